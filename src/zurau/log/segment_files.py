"""Which files of a directory are a log's segments, after whatever was under way is completed or undone.

A compaction that was under way left files behind: `.cleaned` ones were not finished and go; a `.log.swap` was, so the
replacement is completed. What goes is renamed first and removed later. Blocks, all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator
from itertools import pairwise

from zurau.ids import Offset
from zurau.log.batch_file import SegmentEnd
from zurau.log.files import (
    ASIDE_SUFFIX,
    DELETED_SUFFIX,
    LEFTOVER_SUFFIXES,
    LOG_SUFFIX,
    OFFSET_SUFFIX,
    SUFFIXES,
    SWAP_SUFFIX,
    TIME_SUFFIX,
    complete_swap,
    is_segment_file,
    rename_away,
    segment_stem,
)
from zurau.log.scan import highest_offset
from zurau.log.segment import Segment
from zurau.log.settings import LogSettings
from zurau.ports import Disk

log = logging.getLogger("zurau.log")


class SegmentFiles:
    """Those of one directory, from `start_offset` on."""

    def __init__(self, disk: Disk, directory: str, start_offset: Offset, *, start_is_exact: bool) -> None:
        """`start_is_exact`: all that is missing behind the start, and left no mark, is damage."""
        self._disk = disk
        self._directory = directory
        self._start_offset = start_offset
        self._start_is_exact = start_is_exact
        #: Files that nobody needs any more.
        self.leftovers: list[str] = []
        #: One that shows that the first segments have expired, though the checkpoint does not say so yet.
        self.expired_mark: str | None = None

    def put_away(self, names: list[str]) -> list[str]:
        """Complete or undo what was under way; returns the names of what is there for good."""
        if any(name.endswith(SWAP_SUFFIX) for name in names):
            names = self._finish_compaction(names)
        self.leftovers = [self._out_of_the_way(name) for name in names if name.endswith(LEFTOVER_SUFFIXES)]
        found = [name for name in names if is_segment_file(name)]
        stems = {name.partition(".")[0] for name in found if name.endswith(LOG_SUFFIX) and self._is_file(name)}
        kept = []
        for name in found:
            if name.partition(".")[0] in stems:
                kept.append(name)
            elif self._is_file(name):
                self.leftovers.append(self._out_of_the_way(name))
        return kept

    def _out_of_the_way(self, name: str) -> str:
        """Somebody makes a file of that name again before this one is removed: a compaction, or a new segment."""
        path = self._path(name)
        if name.endswith(DELETED_SUFFIX):
            return path
        self._disk.rename(path, path + DELETED_SUFFIX)
        return path + DELETED_SUFFIX

    def _is_file(self, name: str) -> bool:
        if not self._disk.is_directory(self._path(name)):
            return True
        log.warning("%s is a directory, not a segment: it is left alone", self._path(name))
        return False

    def _finish_compaction(self, names: list[str]) -> list[str]:
        for name in names:
            if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
                stem = name.removesuffix(LOG_SUFFIX + SWAP_SUFFIX)
                if any(stem + suffix + SWAP_SUFFIX not in names for suffix in SUFFIXES):
                    # An index may be in place already, or be that of the old log. One index alone would be believed
                    # for the whole segment, so both are made again.
                    for suffix in (OFFSET_SUFFIX, TIME_SUFFIX):
                        self._disk.remove(self._path(stem + suffix + SWAP_SUFFIX))
                complete_swap(self._disk, self._path(stem))
        for name in self._disk.list_directory(self._directory):
            if name.endswith(SWAP_SUFFIX):
                # An index whose log never was replaced, or already is: either way the one in place may be wrong.
                self._disk.remove(self._path(name))
                self._disk.remove(self._path(name.removesuffix(SWAP_SUFFIX)))
        return self._disk.list_directory(self._directory)

    def load(self, names: list[str]) -> Iterator[Segment]:
        bases = [int(name.removesuffix(LOG_SUFFIX)) for name in names if name.endswith(LOG_SUFFIX)]
        start = self._start_offset
        while len(bases) > 1 and bases[1] <= start:
            self.leftovers += rename_away(self._disk, segment_stem(self._directory, bases.pop(0)))
        if bases and bases[0] > start:
            marks = [path for path in self.leftovers if path < segment_stem(self._directory, bases[0])]
            self.expired_mark = next((path for path in marks if path.endswith(LOG_SUFFIX + DELETED_SUFFIX)), None)
        if self.expired_mark is not None:
            self.leftovers.remove(self.expired_mark)
        if not bases or (self._start_is_exact and bases[0] > start and self.expired_mark is None):
            # An empty one in the place of what is missing, or of a log that is new.
            empty = Segment(self._disk, self._directory, SegmentEnd(start, 0), base_offset=start)
            if bases:
                self.make_file(empty)
            yield empty
        present = frozenset(map(self._path, names))
        for base, following in pairwise([*bases, None]):
            assert base is not None
            yield open_segment(self._disk, self._directory, base, highest_offset(base, following), present)

    def leave_over(self, segment: Segment) -> None:
        segment.close()
        self.leftovers += rename_away(self._disk, segment.stem)

    def put_aside(self, segment: Segment, reason: str) -> None:
        segment.close()
        for path in segment.paths:
            if self._disk.exists(path):
                self._disk.rename(path, path + ASIDE_SUFFIX)
        log.warning("%s is not used: %s; kept as %s", segment.path, reason, segment.path + ASIDE_SUFFIX)

    def make_file(self, empty: Segment) -> None:
        """A segment that stands for what is missing needs a file, or the next start would not know of it."""
        empty.file.flush()
        self._disk.flush_directory(self._directory)

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"


def open_segment(
    disk: Disk, directory: str, base_offset: Offset, end_offset: Offset, present: Container[str] | None = None
) -> Segment:
    """A segment as its files say, up to `end_offset`. `present`: the files that are there, if that is known."""
    paths = [segment_stem(directory, base_offset) + suffix for suffix in SUFFIXES]
    size, offset_index_bytes, time_index_bytes = (
        disk.file_size(path) if (disk.exists(path) if present is None else path in present) else 0 for path in paths
    )
    return Segment(
        disk,
        directory,
        SegmentEnd(end_offset, size),
        base_offset=base_offset,
        offset_index_bytes=offset_index_bytes,
        time_index_bytes=time_index_bytes,
    )


def reopen_segment(disk: Disk, directory: str, base_offset: Offset, settings: LogSettings) -> Segment:
    """A segment whose files are right, to be written to. Blocks."""
    segment = open_segment(disk, directory, base_offset, highest_offset(base_offset, None))
    _resume(segment, settings)
    return segment


def _resume(segment: Segment, settings: LogSettings) -> None:
    """Note the batches after the last index entry, so that appends can go on."""
    batches = list(segment.headers(segment.indexed_bytes))
    segment.begin_at_index()
    for position, header in batches:
        segment.note(header, position, settings.index_interval_bytes)
