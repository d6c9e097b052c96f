"""A stretch of the log in one file, with its two indexes.

Batches follow each other without a gap. To find an offset: the nearest index entry before it, then from header to
header. Where a read ended is remembered, because the next one mostly goes on there.

One thread (the loop) appends; others may read meanwhile. They take `end` once and look no further, so they never see
half of an append. When a segment is replaced or removed it is *retired* before its files change: a reader that finds
its segment retired afterwards throws away what it read and asks again.

Reads end before damage, and reads of damaged offsets are refused. An index that leads astray is not followed any more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress

from zurau.errors import CorruptData, DiskFault, UnreadableData
from zurau.ids import Offset
from zurau.log.batch_file import WALK_BYTES, BatchFile, Place, SegmentEnd, place_in
from zurau.log.cold_reads import ColdReads
from zurau.log.files import SUFFIXES, segment_stem
from zurau.log.index import OFFSET_ENTRY, OffsetIndex, TimeIndex
from zurau.log.settings import LogSettings
from zurau.ports import Buffer, Disk, WouldBlock
from zurau.records.batch import HEADER_BYTES, MAGIC, BatchHeader, first_wrong, parse_header
from zurau.settings import INT32_MAX, KIB

log = logging.getLogger("zurau.log")

NO_TIMESTAMP = -1
_REMEMBERED_READS = 32
#: Up to so much is read without looking first where the last whole batch ends: what is read too much is thrown away.
AT_ONCE_BYTES = 128 * KIB


class Segment(BatchFile):
    """The batches from `base_offset` up to the next segment's."""

    __slots__ = (
        "_cold_reads", "_indexed_timestamp", "_reads_ended", "_unindexed_bytes", "first_timestamp", "index_is_wrong",
        "max_timestamp", "max_timestamp_offset", "offset_index", "paths", "stem", "time_index",
    )  # fmt: skip

    def __init__(
        self,
        disk: Disk,
        directory: str,
        end: SegmentEnd,
        *,
        base_offset: Offset,
        offset_index_bytes: int = 0,
        time_index_bytes: int = 0,
        name_suffix: str = "",
    ) -> None:
        self.stem = segment_stem(directory, base_offset)
        #: Of the log, the offset index and the time index.
        self.paths = [self.stem + suffix + name_suffix for suffix in SUFFIXES]
        super().__init__(disk, directory, self.paths[0], base_offset, end)
        self.offset_index = OffsetIndex(disk, self.paths[1], offset_index_bytes)
        self.time_index = TimeIndex(disk, self.paths[2], time_index_bytes)
        #: Its offset index led to a place where no batch begins, or another one than it says.
        self.index_is_wrong = False
        #: Of the first batch, or None while there is none or nobody looked.
        self.first_timestamp: int | None = None
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self._unindexed_bytes = 0
        #: The last in the time index; None when nobody has looked.
        self._indexed_timestamp: int | None = None
        self._reads_ended: dict[Offset, int] = {}
        self._cold_reads = ColdReads(end.position)

    # Writing

    def append(self, batch: Buffer, header: BatchHeader, index_interval_bytes: int) -> None:
        """Write one batch. Raises `DiskFault` with nothing changed."""
        file = self._file or self.file
        file.append((batch,))
        self.note(header, self.end.position, index_interval_bytes)

    def note(self, header: BatchHeader, position: int, index_interval_bytes: int) -> None:
        """Take account of a batch that the file holds at `position`, the end so far."""
        last_offset = header.base_offset + header.last_offset_delta
        length, timestamp = header.length, header.max_timestamp
        if position == 0:
            self.first_timestamp = timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.max_timestamp_offset = last_offset
        if self._unindexed_bytes > index_interval_bytes:
            self.offset_index.append(last_offset - self.base_offset, position)
            self.index_time()
            self._unindexed_bytes = 0
        self._unindexed_bytes += length
        self.end = SegmentEnd(last_offset + 1, position + length)

    def begin_at_index(self) -> None:
        """Forget what is after the last index entry; whoever calls this notes it anew."""
        self.load_timestamp()
        self._unindexed_bytes = 0
        self.end = SegmentEnd(self.base_offset, self.indexed_bytes)

    @property
    def indexed_bytes(self) -> int:
        """The position that the last index entry points at."""
        last = self.offset_index.last()
        return last[1] if last else 0

    def load_timestamp(self) -> None:
        """The largest timestamp, as the time index knows it."""
        last = self.time_index.last()
        if last is not None:
            self.max_timestamp, self.max_timestamp_offset = last[0], self.base_offset + last[1]

    def index_time(self) -> None:
        """Note the largest timestamp, if it is larger than when this was last done."""
        if self._indexed_timestamp is None:
            last = self.time_index.last()
            self._indexed_timestamp = last[0] if last else NO_TIMESTAMP
        if self.max_timestamp > self._indexed_timestamp:
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
            self._indexed_timestamp = self.max_timestamp

    def takes(self, header: BatchHeader, settings: LogSettings) -> bool:
        """Whether a batch can go here, by size and time; an empty segment takes any whose offset it can express."""
        if header.base_offset + header.last_offset_delta - self.base_offset > INT32_MAX:
            return False
        position = self.end.position
        if position == 0:
            return True
        return (
            position + header.length <= settings.segment_bytes
            and (len(self.offset_index) + 1) * OFFSET_ENTRY.size <= settings.segment_index_bytes
            and self.spans(header.max_timestamp) <= settings.segment_ms
        )

    def spans(self, timestamp: int) -> int:
        """How much later than the first batch `timestamp` is; 0 if one of them has none."""
        first = self.first_timestamp
        if first is None:
            if not self.end.position:
                return 0
            first = self.first_timestamp = self._read_first_timestamp()
        return timestamp - first if first > NO_TIMESTAMP < timestamp else 0

    def _read_first_timestamp(self) -> int:
        if self.damage and self.damage[0].position == 0:
            return NO_TIMESTAMP
        try:
            header = parse_header(self.file.read(0, HEADER_BYTES))
        except CorruptData:
            return NO_TIMESTAMP
        return header.max_timestamp if header.magic == MAGIC else NO_TIMESTAMP

    # Reading

    def read(self, offset: Offset, max_bytes: int, upto: Offset, *, may_block: bool) -> bytes:
        """Whole batches from the one that holds `offset`, or the first after it; at least one if there is any.

        Ends before damage; raises `CorruptData` if there is nothing good before it.
        """
        while True:
            damage = self.damage
            ahead = next((one for one in damage if one.next_offset > offset), None) if damage else None
            if ahead is None or ahead.first_offset >= upto:
                data = self._read(offset, max_bytes, upto, may_block=may_block)
            elif ahead.first_offset <= offset or not (
                data := self._read(offset, max_bytes, ahead.first_offset, may_block=may_block)
            ):
                raise ahead.error()
            if self.damage is damage:
                return data
            # Some was found on the way: what was read may lie behind it.

    def _read(self, offset: Offset, max_bytes: int, upto: Offset, *, may_block: bool) -> bytes:
        end = self.end
        start = self.find(offset, may_block=may_block)
        if start >= end.position:
            return b""
        if end.offset <= upto and end.position - start <= max_bytes:
            stop, next_offset = end.position, end.offset
        elif not may_block and max_bytes <= AT_ONCE_BYTES and (data := self._read_at_once(start, max_bytes, upto)):
            return data
        else:
            stop, next_offset = self._cut(start, max_bytes, upto, may_block=may_block)
        for one in self.damage:
            if start <= one.position < stop:  # bytes that hold no offsets, or it would lie beyond `upto`
                stop, next_offset = one.position, one.first_offset
                break
        if stop == start:
            return b""
        is_cold = self._cold_reads.is_cold(self.file, start, stop, may_block=may_block)
        try:
            data = self.file.read(start, stop - start, may_block=may_block)
        except UnreadableData as fault:
            self._found_unreadable(fault, may_block=may_block)
            return b""
        if len(data) < stop - start and not self.is_retired:
            self._look_closer(start + len(data), may_block=may_block)
            return b""
        if is_cold and (wrong := first_wrong(data, next_offset)) is not None:
            self._scanned_bytes = 0  # if it was looked through before: that was not so then
            self._look_closer(start + wrong, may_block=may_block)
            return b""
        self._remember(next_offset, stop)
        if is_cold:
            self._cold_reads.ended(start, stop, end.position)
        return data

    def _read_at_once(self, start: int, max_bytes: int, upto: Offset) -> bytes:
        """As `_read`, with one read of what is in memory, which is cut there. Nothing if that does not suffice, or
        something looks odd: then whoever asks looks closer."""
        end, limit = self.end, start + max_bytes
        if self.damage or self._cold_reads.is_cold(self.file, start, limit, may_block=False):
            return b""
        entry = self._entry_before(limit - HEADER_BYTES, upto, may_block=False)  # whose header is read too
        window = self.file.read(start, min(max(max_bytes, WALK_BYTES), end.position - start), may_block=False)
        is_ahead = entry is not None and entry[1] > start
        stop, offset = entry[1] - start if entry is not None and is_ahead else 0, self.base_offset
        next_offset: Offset | None = None
        while (place := place_in(window, stop, start + stop)) is not None:
            if not offset <= place.base_offset <= place.last_offset < end.offset:
                return b""
            if is_ahead and entry is not None and place.last_offset - self.base_offset != entry[0]:
                return b""
            if place.last_offset >= upto or (place.stop > limit and stop):
                next_offset = place.base_offset
                break
            if place.stop - start > len(window):
                return b""
            stop, is_ahead = place.stop - start, False
            offset = next_offset = place.last_offset + 1
        if next_offset is None or (place is None and len(window) - stop >= HEADER_BYTES):
            return b""
        self._remember(next_offset, start + stop)
        return window[:stop]

    def find(self, offset: Offset, *, may_block: bool = True) -> int:
        """The position of the batch that holds `offset`, or of the first after it, or the end."""
        remembered = self._reads_ended.get(offset)
        if remembered is not None:
            return self._behind_damage(remembered)
        if offset <= self.base_offset:
            return self._behind_damage(0)
        entry = None
        if not self.index_is_wrong:
            entry = self.offset_index.last_at_most(offset - self.base_offset, may_block=may_block)
        try:
            places = self._places_from_entry(entry, may_block=may_block)
            before: Place | None = None
            for place in places:
                if place.last_offset >= offset:
                    if place.base_offset > offset:
                        self._check_gap(before, places, may_block=may_block)
                    return place.start
                before = place
        except _IndexIsWrongError:
            return self.find(offset, may_block=may_block)
        return self.end.position

    def _cut(self, start: int, max_bytes: int, upto: Offset, *, may_block: bool) -> tuple[int, Offset]:
        """Where a read from `start` has to stop, and which offset comes then."""
        limit = start + max_bytes
        entry = self._entry_before(limit, upto, may_block=may_block)
        is_ahead = entry is not None and entry[1] > start
        stop, next_offset = entry[1] if entry is not None and is_ahead else start, upto
        places = (
            self._places_from_entry(entry, may_block=may_block) if is_ahead else self.places(start, may_block=may_block)
        )
        try:
            for place in places:
                if place.last_offset >= upto or (place.stop > limit and stop > start):
                    return stop, place.base_offset if place.start == stop else next_offset
                stop, next_offset = place.stop, place.last_offset + 1
        except _IndexIsWrongError:
            return self._cut(start, max_bytes, upto, may_block=may_block)
        except CorruptData:
            if stop == start:
                raise
            # What is good is served first; whoever asks for what follows is told of the damage.
        return stop, next_offset

    def _entry_before(self, limit: int, upto: Offset, *, may_block: bool) -> tuple[int, int] | None:
        """The last index entry that is at most at position `limit` and offset `upto`."""
        if self.index_is_wrong:
            return None
        entry = self.offset_index.last_at_most(limit, field=1, may_block=may_block)
        if entry is not None and upto < self.end.offset:
            other = self.offset_index.last_at_most(upto - self.base_offset, may_block=may_block)
            entry = min(entry, other) if other is not None else None
        return (entry[0], entry[1]) if entry is not None else None

    def _places_from_entry(self, entry: Sequence[int] | None, *, may_block: bool) -> Iterator[Place]:
        """From an index entry on, or the beginning. Raises if there is not what the entry says."""
        places = self.places(entry[1] if entry is not None else 0, may_block=may_block)
        if entry is not None:
            try:
                first = next(places, None)
            except CorruptData:
                first = None
            # In a damaged place the first one lies behind it.
            if first is None or (first.start == entry[1] and first.last_offset - self.base_offset != entry[0]):
                self._distrust_index(may_block=may_block)
                raise _IndexIsWrongError
            yield first
        yield from places

    def _distrust_index(self, *, may_block: bool) -> None:
        if self.is_retired:
            raise CorruptData(f"{self.path} was replaced meanwhile")
        if not may_block:
            raise WouldBlock  # without the index it will take a while
        if not self.index_is_wrong:
            self.index_is_wrong = True
            self._reads_ended = {}
            log.warning(
                "the index %s does not fit its log: it is not used, which makes reads slower, and made again at the "
                "next start; nothing is lost",
                self.paths[1],
            )

    def _forget_places(self) -> None:
        self._reads_ended = {}

    def _remember(self, offset: Offset, position: int) -> None:
        if len(self._reads_ended) >= _REMEMBERED_READS:
            self._reads_ended = {}
        self._reads_ended[offset] = position

    # Its files

    def flush(self) -> None:
        """Blocks until the log file is safe. The indexes are made again if they are lost."""
        file = self._file
        if file is not None:
            try:
                file.flush()
            except DiskFault:
                if not self.is_retired:  # or else it was closed meanwhile, and nobody needs it
                    raise

    def cut_files(self, offset: Offset) -> None:
        """Shorten the log file to what is before `offset`, and before that its indexes. Blocks until that is safe."""
        position = self.find(offset)
        self.offset_index.truncate(self.offset_index.count_below(position, field=1))
        self.time_index.truncate(self.time_index.count_below(offset - self.base_offset, field=1))
        self._indexed_timestamp = None
        if self.size:
            self.file.truncate(position)
            self.file.flush()

    def write_times(self, count: int) -> bool:
        """Write the first entries of the time index out. False if that failed: they wait in memory."""
        try:
            self.time_index.write_out(count)
        except DiskFault:
            return False
        return True

    def flush_times(self) -> None:
        """Blocks until what was written of the time index is safe."""
        try:
            self.time_index.flush()
        except DiskFault:
            if not self.is_retired:
                raise

    def write_offsets(self, count: int) -> None:
        """Write the first entries of the offset index out. What cannot be written waits in memory."""
        with suppress(DiskFault):
            self.offset_index.write_out(count)

    def write_indexes(self) -> None:
        """Write all entries out, in the order that makes them trustworthy (see flushing). Blocks."""
        if self.index_memory_bytes and self.write_times(len(self.time_index)):
            self.flush_times()
            self.write_offsets(len(self.offset_index))

    @property
    def index_memory_bytes(self) -> int:
        return len(self.offset_index.in_memory) + len(self.time_index.in_memory)

    @property
    def has_proof(self) -> bool:
        """Whether an offset entry on disk proves that what is before it is safe (see flushing)."""
        return self.offset_index.stored_count > 0

    def drop_unproven_times(self) -> None:
        """Time entries behind the last offset entry may be torn, or miss some before them."""
        last = self.offset_index.last()
        self.time_index.truncate(self.time_index.count_below(last[0] + 1 if last else 0, field=1))
        self._indexed_timestamp = None

    def drop_indexes(self) -> None:
        self.offset_index.truncate(0)
        self.time_index.truncate(0)
        self._indexed_timestamp = None

    def retire(self) -> None:
        """This segment's files are about to change or go."""
        self.is_retired = True

    def close(self) -> None:
        self.offset_index.close()
        self.time_index.close()
        file, self._file = self._file, None
        if file is not None:
            file.close()


class _IndexIsWrongError(Exception):
    """An index entry does not lead to the batch that it names."""
