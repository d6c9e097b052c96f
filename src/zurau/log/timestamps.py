"""Finding records by time. Only the one batch that holds the answer is unpacked. Blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from zurau.ids import Offset
from zurau.log.segment import Place, Segment
from zurau.records.batch import BatchHeader
from zurau.records.record import Record, iter_records


class OffsetAndTimestamp(NamedTuple):
    offset: Offset
    timestamp: int


def find_by_timestamp(
    segments: Sequence[Segment], timestamp_ms: int, start: Offset, upto: Offset
) -> OffsetAndTimestamp | None:
    """The first record from `start` on, below `upto`, that is as late as `timestamp_ms` or later."""
    for segment in segments:
        if segment.max_timestamp < timestamp_ms or segment.end.offset <= start:
            continue
        known = segment.base_offset + segment.time_index.offset_before(timestamp_ms)
        for position, header in segment.headers(segment.find(max(known, start))):
            if header.base_offset >= upto:
                return None
            if header.max_timestamp >= timestamp_ms:
                for record in _records(segment, position, header, start, upto):
                    if record.timestamp >= timestamp_ms:
                        return OffsetAndTimestamp(record.offset, record.timestamp)
    return None


def find_max_timestamp(segments: Sequence[Segment], start: Offset, upto: Offset) -> OffsetAndTimestamp | None:
    """The record with the largest timestamp; the first of them if several have it."""
    best: tuple[Segment, int, BatchHeader] | None = None
    for segment in segments:
        if best is not None and segment.max_timestamp <= best[2].max_timestamp:
            continue
        for position, header in _candidates(segment, start, upto):
            if header.record_count and (best is None or header.max_timestamp > best[2].max_timestamp):
                best = segment, position, header
    if best is None:
        return None
    found = max(_records(*best, start, upto), key=lambda record: (record.timestamp, -record.offset), default=None)
    return OffsetAndTimestamp(found.offset, found.timestamp) if found else None


def _candidates(segment: Segment, start: Offset, upto: Offset) -> Iterator[tuple[int, BatchHeader]]:
    """The batch that the segment knows to be the latest, if that one may be seen; else all that may."""
    latest = segment.max_timestamp_offset
    known = start <= latest < upto and segment.size > 0
    for position, header in segment.headers(segment.find(latest if known else start)):
        if header.next_offset > upto:
            return
        yield position, header
        if known:
            return


def _records(segment: Segment, position: int, header: BatchHeader, start: Offset, upto: Offset) -> Iterator[Record]:
    place = Place(header.base_offset, header.last_offset, position, position + header.length)
    return (record for record in iter_records(segment.batch(place)) if start <= record.offset < upto)
