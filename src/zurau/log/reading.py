"""Reading a log: whole batches by offset, headers, and records by time. Nothing here changes it."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator

from zurau.errors import DiskFault, OffsetOutOfRange
from zurau.ids import Offset
from zurau.log import timestamps
from zurau.log.joining import join
from zurau.log.segment import Segment
from zurau.log.timestamps import OffsetAndTimestamp
from zurau.records.batch import BatchHeader
from zurau.records.record import UNPACKED_BYTES_MAX

log = logging.getLogger("zurau.log")


class ReadableLog:
    """The segments of a log, as whoever reads sees them. Workers may read while the loop appends."""

    __slots__ = ("_segments", "directory", "end_offset", "start_offset")

    directory: str
    start_offset: Offset
    end_offset: Offset
    #: Never changed in place: a worker that reads holds on to the list it began with.
    _segments: list[Segment]

    def read(self, offset: Offset, max_bytes: int, upto_offset: Offset, *, may_block: bool = False) -> bytes:
        """Whole batches from the one that holds `offset`, below `upto_offset`; the first one however large it is.

        Raises `OffsetOutOfRange`, or `WouldBlock` if the bytes are not in memory and `may_block` is False. May be
        called from a worker.
        """
        while True:
            if not self.start_offset <= offset <= self.end_offset:
                raise OffsetOutOfRange(f"{self.directory} holds {self.start_offset} to {self.end_offset}, not {offset}")
            if offset >= min(upto_offset, self.end_offset):
                return b""
            segments = self._segments
            number = bisect_right(segments, offset, key=base_offset_of) - 1
            segment = segments[max(0, number)]
            try:
                data = segment.read(offset, max_bytes, upto_offset, may_block=may_block)
            except DiskFault:
                if segment.is_retired:
                    continue
                raise
            if segment.is_retired:
                continue
            following = max(0, number) + 1
            if data or following == len(segments):
                upto = min(upto_offset, self.end_offset)
                return join(data, segments, following, max_bytes, upto, may_block=may_block)
            offset = segments[following].base_offset

    def headers(self, from_offset: Offset) -> Iterator[BatchHeader]:
        """The header of every batch from the one that holds `from_offset` on, past what is damaged. Blocks."""
        for segment in self._segments:
            if segment.end.offset > from_offset:
                try:
                    for _, header in segment.headers(segment.find(from_offset)):
                        yield header
                except DiskFault as fault:
                    if segment is self._segments[-1]:
                        raise
                    log.error("%s cannot be read to its end: %s", segment.path, fault)  # noqa: TRY400 - says it all

    def find_by_timestamp(
        self, timestamp_ms: int, upto_offset: Offset, limit_bytes: int = UNPACKED_BYTES_MAX
    ) -> OffsetAndTimestamp | None:
        """The first record as late as `timestamp_ms` or later. Blocks.

        Raises `TooLarge` if a batch has to be unpacked for it to more than `limit_bytes`.
        """
        return timestamps.find_by_timestamp(self._segments, timestamp_ms, self.start_offset, upto_offset, limit_bytes)

    def find_max_timestamp(
        self, upto_offset: Offset, limit_bytes: int = UNPACKED_BYTES_MAX
    ) -> OffsetAndTimestamp | None:
        """The record with the largest timestamp. Blocks. Raises `TooLarge` as the other search."""
        return timestamps.find_max_timestamp(self._segments, self.start_offset, upto_offset, limit_bytes)


def base_offset_of(segment: Segment) -> Offset:
    return segment.base_offset
