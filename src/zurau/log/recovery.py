"""Bringing a log back: which segments there are, where the last one ends, and what of it can be believed.

After a clean stop everything is believed: names and sizes are looked up and a few bytes at the end are read. After a
crash the end may be torn. An entry of an offset index proves that everything before it was flushed (see flushing); so
whatever lies before the last one on disk is believed, and from there on every batch is checked: its checksum, its
length, that its offset follows on the one before and its epoch does not fall. At the first one that fails, the log is
cut. So it is where a segment ends before the next one begins: it was rolled but not flushed, and lost its end, while
what came later survived. A segment that was flushed always ends where the next one begins (see compaction).

A compaction that was under way left files behind: `.cleaned` ones were not finished and go; a `.log.swap` was, so the
replacement is completed. Indexes that are missing or contradict their log are made again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from zurau.errors import CorruptData
from zurau.ids import Epoch, Offset
from zurau.log import epochs as epoch_file
from zurau.log.epochs import EpochCache, parse_epochs
from zurau.log.files import (
    LEFTOVER_SUFFIXES,
    LOG_SUFFIX,
    SUFFIXES,
    SWAP_SUFFIX,
    complete_swap,
    rename_away,
    segment_stem,
)
from zurau.log.last_known import LastKnown
from zurau.log.segment import Segment, SegmentEnd
from zurau.log.settings import LogSettings
from zurau.ports import Disk
from zurau.records.batch import HEADER_BYTES, MAGIC, BatchHeader, check_crc, parse_header
from zurau.settings import MIB

#: Read at once when every byte is checked.
SCAN_BYTES = 4 * MIB


class Recovery:
    """Finds the segments of one directory. Blocks, all of it: it is how a log is opened."""

    def __init__(
        self, disk: Disk, directory: str, settings: LogSettings, start_offset: Offset, last_known: LastKnown
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._settings = settings
        self._start_offset = start_offset
        self._last_known = last_known
        #: Files that nobody needs any more.
        self.leftovers: list[str] = []
        self.epochs = EpochCache()
        self.segments: list[Segment] = []

    def run(self, names: list[str], *, clean: bool) -> None:
        """Fill `segments` (at least one), `epochs` and `leftovers`, given the names in the directory."""
        self.segments = list(self._load(self._put_away(names)))
        self._load_epochs(is_there=epoch_file.FILE_NAME in names)
        if not clean or not self._trust():
            self._check()
        self._cut_epochs()

    # Which files there are

    def _put_away(self, names: list[str]) -> list[str]:
        """Complete or undo what was under way; returns the names of what is there for good."""
        if any(name.endswith(SWAP_SUFFIX) for name in names):
            names = self._finish_compaction(names)
        self.leftovers = [self._path(name) for name in names if name.endswith(LEFTOVER_SUFFIXES)]
        kept = [name for name in names if name.endswith(SUFFIXES)]
        stems = {name.partition(".")[0] for name in kept if name.endswith(LOG_SUFFIX)}
        self.leftovers += [self._path(name) for name in kept if name.partition(".")[0] not in stems]
        return [name for name in kept if name.partition(".")[0] in stems]

    def _finish_compaction(self, names: list[str]) -> list[str]:
        for name in names:
            if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
                complete_swap(self._disk, self._path(name.removesuffix(LOG_SUFFIX + SWAP_SUFFIX)))
        for name in self._disk.list_directory(self._directory):
            if name.endswith(SWAP_SUFFIX):
                # An index whose log never was replaced, or already is: either way the one in place may be wrong.
                self._disk.remove(self._path(name))
                self._disk.remove(self._path(name.removesuffix(SWAP_SUFFIX)))
        return self._disk.list_directory(self._directory)

    def _load(self, names: list[str]) -> Iterator[Segment]:
        bases = [int(name.removesuffix(LOG_SUFFIX)) for name in names if name.endswith(LOG_SUFFIX)]
        while len(bases) > 1 and bases[1] <= self._start_offset:
            self.leftovers += rename_away(self._disk, segment_stem(self._directory, bases.pop(0)))
        for base, following in pairwise([*bases, None]):
            assert base is not None
            yield open_segment(self._disk, self._directory, base, base if following is None else following)
        if not bases:
            start = self._start_offset
            yield Segment(self._disk, self._directory, SegmentEnd(start, 0), base_offset=start)

    def _leave_over(self, segment: Segment) -> None:
        segment.close()
        self.leftovers += rename_away(self._disk, segment.stem)

    # After a clean stop

    def _trust(self) -> bool:
        """Read the few headers after the last index entry. False if the log is not as a clean stop leaves it."""
        *closed, last = self.segments
        for segment in closed:
            self._load_closed(segment)
        try:
            _resume(last, self._settings)
        except CorruptData:
            return False
        return True

    def _load_closed(self, segment: Segment) -> None:
        """A segment that will not be written to again needs only its largest timestamp, if its indexes are there."""
        if segment.has_proof or not segment.size:
            segment.load_timestamp()
        else:
            self._index_again(segment)

    def _index_again(self, segment: Segment) -> None:
        end = segment.end
        headers = segment.headers()
        segment.drop_indexes()
        segment.begin_at_index()
        segment.end = end
        try:
            for position, header in headers:
                segment.note(header, position, self._settings.index_interval_bytes)
                segment.end = end
        except CorruptData:
            pass  # said again to whoever reads there
        self._close(segment)

    def _close(self, segment: Segment) -> None:
        segment.index_time()
        segment.write_indexes()

    # After a crash

    def _check(self) -> None:
        """Check everything that may not have been flushed, and cut the log where that ends."""
        for segment in self.segments:
            if not _indexes_are_right(segment):
                segment.drop_indexes()
        self._drop_overlapping()
        flushed = max((number for number, segment in enumerate(self.segments) if segment.has_proof), default=0)
        for segment in self.segments[:flushed]:
            self._load_closed(segment)
        for number in range(flushed, len(self.segments)):
            if not self._scan(self.segments[number]) or self._ends_early(number):
                self._cut_after(number)
                break
        for segment in self.segments[flushed:-1]:
            self._close(segment)
        self._disk.flush_directory(self._directory)

    def _drop_overlapping(self) -> None:
        """A segment that begins before the end of the one before it was merged into that one by a compaction."""
        kept: list[Segment] = []
        for segment in self.segments:
            if kept and segment.base_offset < _last_walked_offset(kept[-1]):
                self._leave_over(segment)
            else:
                kept.append(segment)
        for segment, following in pairwise(kept):
            segment.end = SegmentEnd(following.base_offset, segment.size)
        self.segments = kept

    def _ends_early(self, number: int) -> bool:
        """Whether offsets are missing between the end of a segment and the beginning of the next."""
        return (
            number + 1 < len(self.segments) and self.segments[number].end.offset < self.segments[number + 1].base_offset
        )

    def _cut_after(self, number: int) -> None:
        for segment in self.segments[number + 1 :]:
            self._leave_over(segment)
        self.segments = self.segments[: number + 1]

    def _scan(self, segment: Segment) -> bool:
        """Check every batch after the last index entry. Cuts the file after the last good one; False if it did."""
        size = segment.size
        start = segment.indexed_bytes
        segment.drop_unproven_times()
        segment.begin_at_index()
        for position, header in self._good_batches(segment, start, size):
            segment.note(header, position, self._settings.index_interval_bytes)
            if header.leader_epoch > self.epochs.last_epoch:
                self.epochs.assign(header.leader_epoch, header.base_offset)
        is_whole = segment.size == size
        if not is_whole:
            segment.file.truncate(segment.size)
        if size > start:
            segment.file.flush()
        return is_whole

    def _good_batches(self, segment: Segment, position: int, size: int) -> Iterator[tuple[int, BatchHeader]]:
        expected_offset: Offset = segment.base_offset
        epoch: Epoch = -1
        data, data_start = memoryview(b""), position
        while position + HEADER_BYTES <= size:
            at = position - data_start
            header = _header_at(data, at)
            if header is None or at + header.length > len(data):
                wanted = max(SCAN_BYTES, header.length if header else 0)
                data, data_start, at = (
                    memoryview(segment.file.read(position, min(wanted, size - position))),
                    position,
                    0,
                )
                header = _header_at(data, at)
            if header is None or not _is_good(data, at, header, expected_offset, epoch):
                return
            yield position, header
            expected_offset, epoch = header.next_offset, header.leader_epoch
            position += header.length

    # Epochs

    def _load_epochs(self, *, is_there: bool) -> None:
        try:
            if is_there:
                self.epochs = parse_epochs(self._disk.read_file(self._path(epoch_file.FILE_NAME)) or b"")
                return
        except CorruptData:
            pass
        self._epochs_from_batches()

    def _cut_epochs(self) -> None:
        """Forget, on disk too, epochs whose batches are lost: other batches will come to their offsets."""
        self.epochs.cut_end(self.segments[-1].end.offset)
        if self.epochs.change_count:
            self._disk.replace_file(self._path(epoch_file.FILE_NAME), self.epochs.content())
            self.epochs.change_count = 0

    def _epochs_from_batches(self) -> None:
        for segment in self.segments:
            try:
                for _, header in segment.headers():
                    if header.leader_epoch > self.epochs.last_epoch:
                        self.epochs.assign(header.leader_epoch, header.base_offset)
            except CorruptData:
                return

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
    segment = open_segment(disk, directory, base_offset, base_offset)
    _resume(segment, settings)
    return segment


def _resume(segment: Segment, settings: LogSettings) -> None:
    """Note the batches after the last index entry, so that appends can go on."""
    if not _last_entry_is_right(segment):
        raise CorruptData(f"the index of {segment.path} does not fit")
    batches = list(segment.headers(segment.indexed_bytes))
    segment.begin_at_index()
    for position, header in batches:
        segment.note(header, position, settings.index_interval_bytes)


def _indexes_are_right(segment: Segment) -> bool:
    """Whether the stored entries rise and the last one points at the batch it names."""
    offsets = list(segment.offset_index.stored())
    times = list(segment.time_index.stored())
    if any(a[0] >= b[0] or a[1] >= b[1] for a, b in pairwise(offsets)):
        return False
    if any(a[0] >= b[0] or a[1] > b[1] for a, b in pairwise(times)):
        return False
    return _last_entry_is_right(segment)


def _last_entry_is_right(segment: Segment) -> bool:
    last = segment.offset_index.last()
    if last is None:
        return segment.size > 0 or segment.time_index.last() is None
    relative_offset, position = last
    header = _header_at(memoryview(segment.file.read(position, HEADER_BYTES)), 0)
    return header is not None and header.last_offset - segment.base_offset == relative_offset


def _last_walked_offset(segment: Segment) -> Offset:
    """Where the batches end that can be walked to."""
    end = segment.base_offset
    try:
        for place in segment.places(segment.indexed_bytes):
            end = place.last_offset + 1
    except CorruptData:
        pass
    return end


def _header_at(data: memoryview, at: int) -> BatchHeader | None:
    try:
        return parse_header(data, at)
    except CorruptData:
        return None


def _is_good(data: memoryview, at: int, header: BatchHeader, expected_offset: Offset, epoch: Epoch) -> bool:
    return (
        header.magic == MAGIC
        and header.base_offset >= expected_offset
        and header.last_offset_delta >= 0
        and header.leader_epoch >= epoch
        and check_crc(data, header, at)
    )
