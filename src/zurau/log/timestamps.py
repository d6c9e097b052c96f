"""Finding records by time. Only the one batch that holds the answer is unpacked. Blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from zurau.errors import CorruptData
from zurau.ids import Offset
from zurau.log.batch_file import Place
from zurau.log.segment import Segment
from zurau.records.batch import BatchHeader, check_crc
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
    best: OffsetAndTimestamp | None = None
    for segment in segments:
        if best is not None and segment.max_timestamp <= best.timestamp:
            continue
        # The latest batches first. Of the first that is unpacked, only a record before `start` can disappoint.
        for position, header in sorted(_candidates(segment, start, upto), key=lambda one: -one[1].max_timestamp):
            if best is not None and header.max_timestamp <= best.timestamp:
                break
            for record in _records(segment, position, header, start, upto):
                if best is None or record.timestamp > best.timestamp:
                    best = OffsetAndTimestamp(record.offset, record.timestamp)
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


def _records(segment: Segment, position: int, header: BatchHeader, start: Offset, upto: Offset) -> Iterator[Record]:
    """The records of a batch that may be seen; none if it is damaged."""
    batch = segment.batch(Place(header.base_offset, header.last_offset, position, position + header.length))
    try:
        for record in iter_records(batch):
            if start <= record.offset < upto:
                yield record
    except CorruptData:
        if check_crc(batch, header):
            raise  # its producer packed it so
        segment.find_damage()
