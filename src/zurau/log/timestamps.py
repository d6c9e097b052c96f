"""Finding records by time. Only the one batch that holds the answer is unpacked, and nothing is built of it. Blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from zurau.errors import CorruptData
from zurau.ids import Offset
from zurau.log.batch_file import Place
from zurau.log.segment import Segment
from zurau.records.batch import HEADER_BYTES, BatchHeader, check_crc
from zurau.records.compression import TooLarge, decompress, likely_bytes
from zurau.records.pure_walk import INT64_MIN
from zurau.records.record import UNPACKED_BYTES_MAX
from zurau.records.walk import find_time


class OffsetAndTimestamp(NamedTuple):
    offset: Offset
    timestamp: int


class _Search(NamedTuple):
    """Of the records from `start` on, below `upto`; of batches that unpack to no more than `limit_bytes`."""

    start: Offset
    upto: Offset
    limit_bytes: int


def find_by_timestamp(
    segments: Sequence[Segment], timestamp_ms: int, start: Offset, upto: Offset, limit_bytes: int = UNPACKED_BYTES_MAX
) -> OffsetAndTimestamp | None:
    """The first record from `start` on, below `upto`, that is as late as `timestamp_ms` or later.

    Raises `TooLarge` if a batch has to be unpacked for it to more than `limit_bytes`.
    """
    search = _Search(start, upto, limit_bytes)
    for segment in segments:
        if segment.max_timestamp < timestamp_ms or segment.end.offset <= start:
            continue
        known = segment.base_offset + segment.time_index.offset_before(timestamp_ms)
        for position, header in segment.headers(segment.find(max(known, start))):
            if header.base_offset >= upto:
                return None
            if header.max_timestamp >= timestamp_ms:
                found = _look_into(segment, position, header, search, at_least=timestamp_ms)
                if found is not None:
                    return found
    return None


def find_max_timestamp(
    segments: Sequence[Segment], start: Offset, upto: Offset, limit_bytes: int = UNPACKED_BYTES_MAX
) -> OffsetAndTimestamp | None:
    """The record with the largest timestamp; the first of them if several have it. Raises `TooLarge` as the other."""
    best: OffsetAndTimestamp | None = None
    search = _Search(start, upto, limit_bytes)
    for segment in segments:
        if best is not None and segment.max_timestamp <= best.timestamp:
            continue
        # The latest batches first. Of the first that is unpacked, only a record before `start` can disappoint.
        for position, header in sorted(_candidates(segment, start, upto), key=lambda one: -one[1].max_timestamp):
            if best is not None and header.max_timestamp <= best.timestamp:
                break
            later = INT64_MIN if best is None else best.timestamp + 1
            best = _look_into(segment, position, header, search, at_least=later, latest=True) or best
    return best


def _candidates(segment: Segment, start: Offset, upto: Offset) -> Iterator[tuple[int, BatchHeader]]:
    """The batch that the segment knows to be the latest, if it may be seen wholly; else all that may be seen."""
    latest = segment.max_timestamp_offset
    known = next(segment.headers(segment.find(latest)), None) if start <= latest < upto else None
    if known is not None and start <= known[1].base_offset <= latest:  # or else the latest is damaged
        yield known
        return
    for position, header in segment.headers(segment.find(start)):
        if header.next_offset > upto:
            return
        yield position, header


def _look_into(
    segment: Segment, position: int, header: BatchHeader, search: _Search, *, at_least: int, latest: bool = False
) -> OffsetAndTimestamp | None:
    """The first record of a batch that is as late as that, or the first of the latest; None if it is damaged.

    Raises `CorruptData` if its producer packed it wrongly.
    """
    batch = segment.batch(Place(header.base_offset, header.last_offset, position, position + header.length))
    found: OffsetAndTimestamp | None = None
    try:
        found = _look_into_records(batch, header, search, at_least=at_least, latest=latest)
    except CorruptData as fault:
        is_left_to_others = isinstance(fault, TooLarge) and search.limit_bytes < UNPACKED_BYTES_MAX
        if is_left_to_others or check_crc(batch, header):
            raise
    if found is None and not check_crc(batch, header):
        segment.find_damage()
    return found


def _look_into_records(
    batch: bytes, header: BatchHeader, search: _Search, *, at_least: int, latest: bool
) -> OffsetAndTimestamp | None:
    packed = memoryview(batch)[HEADER_BYTES : header.length]
    if search.limit_bytes < UNPACKED_BYTES_MAX and likely_bytes(packed, header.compression) > search.limit_bytes:
        raise TooLarge(f"seems to unpack to more than {search.limit_bytes} bytes")
    payload = decompress(packed, header.compression, search.limit_bytes) if packed else packed
    base = header.base_offset
    first, end = search.start - base, search.upto - base
    if header.uses_append_time:  # all records have the batch's
        found = find_time(payload, header.record_count, 0, first, end, INT64_MIN, latest=False)
        return OffsetAndTimestamp(base + found[0], header.max_timestamp) if found else None
    found = find_time(payload, header.record_count, header.base_timestamp, first, end, at_least, latest=latest)
    return OffsetAndTimestamp(base + found[0], found[1]) if found else None
