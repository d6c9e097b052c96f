"""Quick checks of a segment, by its last index entries and the few headers behind them. All block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from zurau.epochs import NO_EPOCH, EpochHistory
from zurau.errors import CorruptData, DiskFault, UnreadableData
from zurau.ids import Offset
from zurau.log.batch_file import WALK_BYTES
from zurau.log.scan import BadStretch, Scan, highest_offset
from zurau.log.segment import Segment
from zurau.records.batch import HEADER_BYTES, MAGIC, BatchHeader, parse_header


def ends_at(segment: Segment, following: Offset) -> bool:
    """Whether the batches behind the last index entry are good and reach the next segment."""
    start = segment.indexed_bytes
    first = header_at(segment, start)
    if first is None:
        return False
    end = segment.base_offset
    scan = Scan(segment.file, segment.size, highest_offset(segment.base_offset, following))
    for stretch in scan.stretches(start, first.base_offset, first.leader_epoch):
        if isinstance(stretch, BadStretch):
            return False
        end = stretch.header.next_offset
    return end == following


def indexes_are_right(segment: Segment) -> bool:
    """Whether the stored entries rise and the last ones lead to the batches they name."""
    offsets = list(segment.offset_index.stored())
    times = list(segment.time_index.stored())
    if any(a[0] >= b[0] or a[1] >= b[1] for a, b in pairwise(offsets)):
        return False
    if any(a[0] >= b[0] or a[1] > b[1] for a, b in pairwise(times)):
        return False
    return last_entries_are_right(segment)


def last_entries_are_right(segment: Segment) -> bool:
    """Whether the last entry of each index leads to the batch that it names. A small segment has no offset entries."""
    try:
        last = segment.offset_index.last()
        if last is not None:
            relative_offset, position = last
            header = header_at(segment, position)
            if header is None or header.last_offset - segment.base_offset != relative_offset:
                return False
        return _last_time_is_right(segment)
    except DiskFault:
        return False


def _last_time_is_right(segment: Segment) -> bool:
    """By the time index a segment's age is told: one that is wrong must not make it go."""
    last = segment.time_index.last()
    if last is None:
        first = header_at(segment, 0)
        return first is not None and first.max_timestamp < 0
    timestamp, relative_offset = last
    offset = segment.base_offset + relative_offset
    entry = segment.offset_index.last_at_most(relative_offset)
    for header in _walked(segment, entry[1] if entry else 0):
        if header.last_offset >= offset:
            return (header.last_offset, header.max_timestamp) == (offset, timestamp)
    return False


def epochs_fit(epochs: EpochHistory, segments: Sequence[Segment]) -> bool:
    """Whether the batches on both sides of where each epoch begins are of the epochs that are said."""
    if any(mark.start_offset < 0 for mark in epochs.marks):
        return False
    wanted = {offset for mark in epochs.marks for offset in (mark.start_offset - 1, mark.start_offset)}
    for segment in segments:
        for offset in sorted(one for one in wanted if segment.base_offset <= one < segment.end.offset):
            _, header = next(segment.headers(segment.find(offset)), (0, None))
            if header is not None and epochs.epoch_of(header.base_offset) not in (header.leader_epoch, NO_EPOCH):
                return False
    return True


def proven_offset(segment: Segment) -> Offset:
    last = segment.offset_index.last()
    return segment.base_offset + last[0] + 1 if last else 0


def walked_end(segment: Segment) -> Offset:
    """Where the offsets end of the batches that can be walked to."""
    end = segment.base_offset
    try:
        for header in _walked(segment, segment.indexed_bytes):
            end = header.next_offset
    except DiskFault:
        pass  # said again where it is checked
    return end


def _walked(segment: Segment, position: int) -> Iterator[BatchHeader]:
    """From header to header as far as that goes; nothing is looked into."""
    window, window_start, offset = b"", position, segment.base_offset
    while position + HEADER_BYTES <= segment.size:
        at = position - window_start
        if not 0 <= at <= len(window) - HEADER_BYTES:
            window = segment.file.read(position, max(WALK_BYTES, HEADER_BYTES))
            window_start, at = position, 0
        header = _parsed(window, at)
        if header is None or header.magic != MAGIC or not offset <= header.base_offset <= header.last_offset:
            return
        if header.length > segment.size - position:
            return
        yield header
        position, offset = position + header.length, header.next_offset


def is_copy(segment: Segment, other: Segment) -> bool:
    """Whether the first batch of a segment is in the other one too, to the byte."""
    position = 0
    for header in _walked(other, 0):
        if header.base_offset >= segment.base_offset:
            first = segment.file.read(0, header.length)
            return bool(first) and first == other.file.read(position, header.length)
        position += header.length
    return False


def header_at(segment: Segment, position: int) -> BatchHeader | None:
    """None if there is none, or it cannot be read."""
    try:
        return _parsed(segment.file.read(position, HEADER_BYTES), 0) if segment.size else None
    except UnreadableData:
        return None


def _parsed(data: bytes, at: int) -> BatchHeader | None:
    try:
        return parse_header(data, at)
    except CorruptData:
        return None
