"""The decoder in plain Python: the one to read, and the one that serves where nothing could be compiled.

`_decode.pyx` does the same, some fifty times quicker; tests hold the two to the same bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from pyspark_zurau.arrow.layout import (
    HEADERS,
    KEYS,
    TIMESTAMP_MS_MAX,
    TIMESTAMP_MS_MIN,
    VALUES,
    Binary,
    Columns,
    HeaderLists,
    Part,
)
from zurau.errors import CorruptData
from zurau.ids import Offset
from zurau.records.record import Header, decode_records
from zurau.settings import INT32_MAX


def decode(parts: Sequence[Part], start: Offset, end: Offset, wanted: int) -> Columns:
    """The records with offsets from `start` to before `end`. Raises `CorruptData` if any record is damaged."""
    records = []
    for header, payload in parts:
        for record in decode_records(header, bytes(payload)):
            if abs(record.offset - header.base_offset) > INT32_MAX:
                raise CorruptData("a record's offset is too far from that of its batch")
            if start <= record.offset < end:
                records.append(record)
    return Columns(
        row_count=len(records),
        offsets=_int64s([record.offset for record in records]),
        timestamps_us=_int64s([_microseconds(record.timestamp) for record in records]),
        keys=_binary([record.key for record in records]) if wanted & KEYS else None,
        values=_binary([record.value for record in records]) if wanted & VALUES else None,
        headers=_header_lists([record.headers for record in records]) if wanted & HEADERS else None,
    )


def _microseconds(timestamp_ms: int) -> int:
    return max(TIMESTAMP_MS_MIN, min(timestamp_ms, TIMESTAMP_MS_MAX)) * 1000


def _binary(items: Sequence[bytes | None]) -> Binary:
    lengths = [len(item or b"") for item in items]
    null_count = items.count(None)
    validity = _bitmap([item is not None for item in items]) if null_count else None
    return Binary(validity, _running_total(lengths), bytearray().join(item or b"" for item in items), null_count)


def _header_lists(lists: Sequence[Sequence[Header]]) -> HeaderLists:
    null_count = sum(1 for headers in lists if not headers)
    together = [header for headers in lists for header in headers]
    return HeaderLists(
        validity=_bitmap([bool(headers) for headers in lists]) if null_count else None,
        offsets=_running_total([len(headers) for headers in lists]),
        null_count=null_count,
        header_count=len(together),
        keys=_binary([key.encode() for key, _ in together]),
        values=_binary([value for _, value in together]),
    )


def _bitmap(flags: Sequence[bool]) -> bytearray:
    """One bit for each, the least significant first."""
    bits = bytearray((len(flags) + 7) // 8)
    for index, flag in enumerate(flags):
        bits[index >> 3] |= flag << (index & 7)
    return bits


def _running_total(lengths: Sequence[int]) -> bytearray:
    totals = array("i", [0])
    total = 0
    for length in lengths:
        total += length
        totals.append(total)
    return bytearray(totals.tobytes())


def _int64s(numbers: Sequence[int]) -> bytearray:
    return bytearray(array("q", numbers).tobytes())
