"""Bringing a log back: which segments there are, where each one ends, and what of it can be believed.

An entry of an offset index proves that everything before it was flushed (see flushing). So whatever lies before the
last one on disk is believed, and from there on every batch is checked (see scan): at the end of each segment, which is
little after a clean stop. What is found wrong is one of two things:

- a *torn tail*: it lies above everything that was flushed, as the proof and the broker's journal say (`LastKnown`). A
  crash leaves that behind; the log is cut there. If the machine did not restart, only the last write can be torn.
- *damage*: anything else, and anything at all after a clean stop. It is never cut. A segment that ends before the next
  one begins has lost its end (see compaction for why compacted ones do not look so); a log that ends below what is
  known to have been in it goes on where that ended, in a new segment, so that no offset is given out twice.

Without a journal nobody knows what was flushed last: then a bad place that good batches follow, in the same file, is
taken for damage.

A compaction that was under way left files behind: `.cleaned` ones were not finished and go; a `.log.swap` was, so the
replacement is completed. Indexes that are missing or contradict their log are made again. Every cut and every damaged
range is told in the broker's log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import pairwise

from zurau.errors import CorruptData, DiskFault
from zurau.ids import Offset
from zurau.log import epochs as epoch_file
from zurau.log.batch_file import SegmentEnd
from zurau.log.checkpoint import Checkpoint
from zurau.log.damage import ADVICE, DamagedRange, gap_reason
from zurau.log.epochs import EpochCache, EpochEntry, parse_epochs
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
from zurau.log.glance import (
    ends_at,
    epochs_fit,
    header_at,
    indexes_are_right,
    is_copy,
    last_entries_are_right,
    proven_offset,
    walked_end,
)
from zurau.log.known_damage import FILE_NAME, restore_damage, save_damage
from zurau.log.last_known import LastKnown
from zurau.log.scan import BadStretch, Scan, highest_offset
from zurau.log.segment import Segment
from zurau.log.settings import LogSettings
from zurau.ports import Disk

log = logging.getLogger("zurau.log")


class Recovery:
    """Finds the segments of one directory. Blocks, all of it: it is how a log is opened."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        saved: Checkpoint | None,
        last_known: LastKnown | None,
        *,
        clean: bool,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._settings = settings
        self._start_offset = saved.start_offset if saved is not None else 0
        #: Whether all that is missing behind it, and left no mark, is damage.
        self._start_is_exact = saved is not None and (clean or not saved.is_old)
        self._last_known = last_known
        self._clean = clean
        #: Everything below was flushed. Grows when the indexes are looked at.
        self._flushed_offset = last_known.flushed_offset if last_known else 0
        #: Files that nobody needs any more.
        self.leftovers: list[str] = []
        #: One that shows that the first segments have expired, though the checkpoint does not say so yet.
        self.expired_mark: str | None = None
        self.epochs = EpochCache()
        #: Where the oldest epoch begins, if that was written down: no later than the log.
        self.epochs_start: Offset = 0
        #: Those of the batches that were checked.
        self._checked_epochs: list[EpochEntry] = []
        self.segments: list[Segment] = []

    def run(self, names: list[str]) -> None:
        """Fill `segments` (at least one), `epochs` and `leftovers`, given the names in the directory."""
        self.segments = list(self._load(self._put_away(names)))
        for segment in self.segments:
            if not (last_entries_are_right(segment) if self._clean else indexes_are_right(segment)):
                segment.drop_indexes()
        self._sort_out_overlaps()
        self._check()
        self._go_on_behind_what_is_known()
        restore_damage(self._disk, self._directory, self.segments)
        damage = [one for segment in self.segments for one in segment.damage]
        if damage or FILE_NAME in names:
            save_damage(self._disk, self._directory, damage)
        self._load_epochs()

    # Which files there are

    def _put_away(self, names: list[str]) -> list[str]:
        """Complete or undo what was under way; returns the names of what is there for good."""
        if any(name.endswith(SWAP_SUFFIX) for name in names):
            names = self._finish_compaction(names)
        self.leftovers = [self._path(name) for name in names if name.endswith(LEFTOVER_SUFFIXES)]
        kept = [name for name in names if is_segment_file(name) and self._is_file(name)]
        stems = {name.partition(".")[0] for name in kept if name.endswith(LOG_SUFFIX)}
        self.leftovers += [self._path(name) for name in kept if name.partition(".")[0] not in stems]
        return [name for name in kept if name.partition(".")[0] in stems]

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

    def _load(self, names: list[str]) -> Iterator[Segment]:
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
                self._make_file(empty)
            yield empty
        for base, following in pairwise([*bases, None]):
            assert base is not None
            yield open_segment(self._disk, self._directory, base, highest_offset(base, following))

    def _leave_over(self, segment: Segment) -> None:
        segment.close()
        self.leftovers += rename_away(self._disk, segment.stem)

    def _sort_out_overlaps(self) -> None:
        """What begins before the end of the segment before it was merged into that one by a compaction, or is a copy.

        If neither, the offsets of one of them are wrong, and the check will tell.
        """
        bases = {segment.base_offset for segment in self.segments}
        kept: list[Segment] = []
        for segment in self.segments:
            end = walked_end(kept[-1]) if kept else 0
            if segment.base_offset >= end:
                kept.append(segment)
            elif end in bases:
                log.info("%s was merged into %s by a compaction, and goes", segment.path, kept[-1].path)
                self._leave_over(segment)
            elif walked_end(segment) <= end and is_copy(segment, kept[-1]):
                self._put_aside(segment, f"its records are in {kept[-1].path} too")
            else:
                kept.append(segment)
        self.segments = kept

    def _put_aside(self, segment: Segment, reason: str) -> None:
        segment.close()
        for path in segment.paths:
            if self._disk.exists(path):
                self._disk.rename(path, path + ASIDE_SUFFIX)
        log.warning("%s is not used: %s; kept as %s", segment.path, reason, segment.path + ASIDE_SUFFIX)

    # What is in them

    def _check(self) -> None:
        """Go through what is not proven of each segment; cut a torn tail, and find damage."""
        proven = max((number for number, segment in enumerate(self.segments) if segment.has_proof), default=0)
        if self.segments[proven].has_proof:
            self._flushed_offset = max(self._flushed_offset, proven_offset(self.segments[proven]))
        for number, segment in enumerate(self.segments):
            later = self.segments[number + 1 :]
            is_believed = self._clean or number < proven
            try:
                is_whole = self._check_segment(segment, later, is_believed=is_believed)
            except CorruptData:
                raise
            except DiskFault as fault:
                if not later:
                    raise
                self._is_unreadable(segment, later[0].base_offset, fault)
                is_whole = True
            if not is_whole:
                self._cut_after(number)
                break
        if not self._clean:
            self._disk.flush_directory(self._directory)

    def _check_segment(self, segment: Segment, later: list[Segment], *, is_believed: bool) -> bool:
        """Returns False if the log ends in this segment, whatever comes later."""
        following = later[0].base_offset if later else None
        if is_believed and following is not None and segment.has_proof and ends_at(segment, following):
            segment.load_timestamp()
            segment.end = SegmentEnd(following, segment.size)
            return True
        size, start = segment.size, segment.indexed_bytes
        is_end = not any(one.size for one in later)
        damage: list[DamagedRange] = []
        is_whole = True
        for stretch in self._noted(segment, following):
            if not is_believed and self._is_torn(
                stretch.first_offset,
                good_follows=stretch.next_offset is not None,
                is_last_write=is_end and stretch.is_cut_short,
            ):
                self._cut(segment, stretch)
                is_whole = False
                break
            damage.append(segment.damaged_range(stretch, self._end_of_damage(stretch, following)))
            segment.end = SegmentEnd(damage[-1].next_offset, stretch.end_position)
        if is_whole and following is not None and segment.end.offset < following:
            if not is_believed and self._is_torn(segment.end.offset, good_follows=False, is_last_write=False):
                is_whole = False
            else:
                damage.append(self._missing(segment, following, gap_reason(following)))
        if following is not None and is_whole:
            segment.end = SegmentEnd(following, size)
            segment.index_time()
            segment.write_indexes()
        if size > start and not self._clean:
            segment.file.flush()
        self._tell(segment, damage)
        return is_whole

    def _noted(self, segment: Segment, following: Offset | None) -> Iterator[BadStretch]:
        """Take account of every good batch after the last index entry; what lies between them is returned."""
        size, start = segment.size, segment.indexed_bytes
        first = header_at(segment, start)
        expected, epoch = (first.base_offset, first.leader_epoch) if start and first else (segment.base_offset, -1)
        if not self._clean:
            segment.drop_unproven_times()
        segment.begin_at_index()
        scan = Scan(segment.file, size, self._below(segment, following)) if size else None
        for stretch in scan.stretches(start, expected, epoch) if scan else ():
            if isinstance(stretch, BadStretch):
                yield stretch
                continue
            segment.note(stretch.header, stretch.position, self._settings.index_interval_bytes)
            if not self._checked_epochs or stretch.header.leader_epoch > self._checked_epochs[-1].epoch:
                self._checked_epochs.append(EpochEntry(stretch.header.leader_epoch, stretch.header.base_offset))

    def _below(self, segment: Segment, following: Offset | None) -> Offset:
        closed = self._last_known.closed_offset if self._last_known and self._clean else None
        if following is None and closed is not None and closed > segment.base_offset:
            following = closed
        return highest_offset(segment.base_offset, following)

    def _end_of_damage(self, stretch: BadStretch, following: Offset | None) -> Offset:
        if stretch.next_offset is not None:
            return stretch.next_offset
        # Of a bad end it is not known how many records it held: one at least.
        if following is not None:
            return following
        return max(stretch.claimed_offset, stretch.first_offset + 1, self._known_end)

    @property
    def _known_end(self) -> Offset:
        """The log reached at least so far once."""
        closed = self._last_known.closed_offset if self._last_known is not None else None
        return max(self._flushed_offset, closed or 0)

    def _is_torn(self, offset: Offset, *, good_follows: bool, is_last_write: bool) -> bool:
        """Whether a crash explains that the log is bad, or ends, at `offset`.

        `good_follows`: in the same file. `is_last_write`: it is the beginning of a batch, at the very end.
        """
        if offset < self._flushed_offset:
            return False
        if self._last_known is None:
            return not good_follows
        return is_last_write or not self._last_known.kept_unflushed

    def _missing(self, segment: Segment, next_offset: Offset, reason: str) -> DamagedRange:
        end = segment.end
        return DamagedRange(self._directory, end.offset, next_offset, segment.path, end.position, end.position, reason)

    def _is_unreadable(self, segment: Segment, following: Offset, fault: DiskFault) -> None:
        size = segment.size
        segment.end = SegmentEnd(following, size)
        whole = DamagedRange(self._directory, segment.base_offset, following, segment.path, 0, size, str(fault))
        self._tell(segment, [whole])

    def _tell(self, segment: Segment, damage: list[DamagedRange]) -> None:
        segment.damage = tuple(
            sorted((*segment.damage, *(one for one in damage if one.size_bytes or one.next_offset > one.first_offset)))
        )
        for one in damage:
            log.error("%s; %s", one, ADVICE)

    # The end

    def _cut(self, segment: Segment, stretch: BadStretch) -> None:
        """Cut a torn tail off the file."""
        log.warning(
            "%s: the end is torn: %d bytes are cut off %s from %d on (%s); %s",
            self._directory,
            segment.size - stretch.position
            if segment.size > stretch.position
            else stretch.end_position - stretch.position,
            segment.path,
            stretch.position,
            stretch.reason,
            self._what_was_flushed(),
        )
        segment.file.truncate(stretch.position)

    def _what_was_flushed(self) -> str:
        if self._last_known is None:
            return "how far it was flushed is not written down, so it cannot be said whether any of it was acknowledged"
        return f"all that was flushed, up to offset {self._flushed_offset}, is there"

    def _cut_after(self, number: int) -> None:
        end = self.segments[number].end.offset
        for segment in self.segments[number + 1 :]:
            if segment.size:
                log.warning(
                    "%s: %s, %d bytes from offset %d on, goes: the log ends at %d before it; %s",
                    self._directory,
                    segment.path,
                    segment.size,
                    segment.base_offset,
                    end,
                    self._what_was_flushed(),
                )
            self._leave_over(segment)
        self.segments = self.segments[: number + 1]

    def _go_on_behind_what_is_known(self) -> None:
        """Begin a new segment if the last one has a damaged end, or ends before what is known to have been there."""
        last = self.segments[-1]
        known_end = self._known_end
        if last.end.offset < known_end:
            missing = self._missing(last, known_end, f"everything below offset {known_end} was flushed once")
            self._tell(last, [missing])
        elif not last.damage or last.damage[-1].next_offset < last.end.offset:
            return
        if not last.size:
            self._make_file(last)
        base = max(known_end, last.end.offset)
        last.end = SegmentEnd(base, last.size)
        last.index_time()
        last.write_indexes()
        self.segments.append(Segment(self._disk, self._directory, SegmentEnd(base, 0), base_offset=base))

    def _make_file(self, empty: Segment) -> None:
        """A segment that stands for what is missing needs a file, or the next start would not know of it."""
        empty.file.flush()
        self._disk.flush_directory(self._directory)

    # Epochs

    def _load_epochs(self) -> None:
        """The epochs that the file names and those of the batches behind; all from the batches if they do not fit."""
        end = self.segments[-1].end.offset
        content = self._disk.read_file(self._path(epoch_file.FILE_NAME))
        try:
            self.epochs = parse_epochs(content) if content is not None else EpochCache()
            # Those whose batches are lost are forgotten, on disk too: other batches will come to their offsets.
            self.epochs.cut_end(end)
            for epoch, start_offset in self._checked_epochs:
                if epoch > self.epochs.last_epoch:
                    self.epochs.assign(epoch, start_offset)
            if (content is None and self.segments[0].size) or not epochs_fit(self.epochs, self.segments):
                raise CorruptData("it does not fit the batches" if content is not None else "it is missing")
            if content is not None and self.epochs.entries:
                self.epochs_start = self.epochs.entries[0].start_offset
        except CorruptData as damage:
            log.warning("%s: %s: made again from the batches", self._path(epoch_file.FILE_NAME), damage)
            self._epochs_from_batches()
        if self.epochs.change_count:
            self._disk.replace_file(self._path(epoch_file.FILE_NAME), self.epochs.content())
            self.epochs.change_count = 0

    def _epochs_from_batches(self) -> None:
        self.epochs = EpochCache()
        self.epochs.change_count = 1
        for segment in self.segments:
            try:
                for _, header in segment.headers():
                    if header.leader_epoch > self.epochs.last_epoch:
                        self.epochs.assign(header.leader_epoch, header.base_offset)
            except CorruptData:
                continue  # said already

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"


def open_segment(disk: Disk, directory: str, base_offset: Offset, end_offset: Offset) -> Segment:
    """A segment as its files say, up to `end_offset`."""
    stem = segment_stem(directory, base_offset)
    size, offset_index_bytes, time_index_bytes = (
        disk.file_size(stem + suffix) if disk.exists(stem + suffix) else 0 for suffix in SUFFIXES
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
