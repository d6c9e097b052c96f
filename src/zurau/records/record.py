"""The records inside a batch.

    length | attributes i8 | timestamp delta | offset delta | key | value | header count | headers

All numbers but the attributes are zigzag varints, least significant group first; a length of -1 stands for null.
Everything is checked against the bytes that are there: a batch that was made to confuse raises `CorruptData` and
costs no more than its own size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from zurau.errors import CorruptData
from zurau.ids import Offset
from zurau.ports import Buffer
from zurau.records.batch import HEADER_BYTES, MAGIC, BatchHeader, parse_header
from zurau.records.compression import decompress
from zurau.settings import MIB

#: A batch may unpack to so much and no more.
UNPACKED_BYTES_MAX = 128 * MIB
#: A record has at least seven parts of one byte each.
_RECORD_BYTES_MIN = 7
_VARINT_BITS_MAX = 64

Header = tuple[str, bytes | None]


class Record(NamedTuple):
    offset: Offset
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()


def iter_records(batch: Buffer, limit_bytes: int = UNPACKED_BYTES_MAX) -> Iterator[Record]:
    """The records of one batch. Raises `CorruptData` at the first thing that cannot be."""
    header = parse_header(batch)
    if header.magic != MAGIC:
        raise CorruptData(f"a batch of version {header.magic}; only version {MAGIC} is known")
    if header.length > len(batch):
        raise CorruptData(f"a batch of {header.length} bytes is cut short to {len(batch)}")
    payload = memoryview(batch)[HEADER_BYTES : header.length]
    if header.record_count == 0 and not payload:
        return iter(())
    return decode_records(header, bytes(decompress(payload, header.compression, limit_bytes)))


def decode_records(header: BatchHeader, data: bytes) -> Iterator[Record]:
    """The records in the decompressed `data` of a batch. Raises `CorruptData` at the first thing that cannot be."""
    if not 0 <= header.record_count <= len(data) // _RECORD_BYTES_MIN:
        raise CorruptData(f"{header.record_count} records do not fit into {len(data)} bytes")
    append_time = header.max_timestamp if header.uses_append_time else None
    position = 0
    for _ in range(header.record_count):
        try:
            record, position = _decode_record(data, position, header.base_offset, header.base_timestamp)
        except IndexError:
            raise CorruptData("a record runs over the end of its batch") from None
        except UnicodeDecodeError:
            raise CorruptData("a record header's key is not UTF-8") from None
        yield record if append_time is None else record._replace(timestamp=append_time)
    if position != len(data):
        raise CorruptData(f"{len(data) - position} bytes follow the last record of a batch")


class Packed(NamedTuple):
    """A record as far as compaction looks at it. What follows its offset lies from `start` to before `end`."""

    offset_delta: int
    timestamp: int
    key: bytes | None
    has_value: bool
    start: int
    end: int


def packed_records(header: BatchHeader, data: bytes) -> Iterator[Packed]:
    """The records in the decompressed `data` of a batch, without making anything of values and headers."""
    if not 0 <= header.record_count <= len(data) // _RECORD_BYTES_MIN:
        raise CorruptData(f"{header.record_count} records do not fit into {len(data)} bytes")
    end = 0
    for _ in range(header.record_count):
        try:
            length, position = read_varint(data, end)
            end = position + length
            if length < 0 or end > len(data):
                raise CorruptData(f"a record of {length} bytes where {len(data) - position} are left")
            timestamp_delta, position = read_varint(data, position + 1)
            offset_delta, start = read_varint(data, position)
            key, position = _read_bytes(data, start, end)
            value_length, _ = read_varint(data, position)
        except IndexError:
            raise CorruptData("a record runs over the end of its batch") from None
        yield Packed(offset_delta, header.base_timestamp + timestamp_delta, key, value_length >= 0, start, end)
    if end != len(data):
        raise CorruptData(f"{len(data) - end} bytes follow the last record of a batch")


def _decode_record(data: bytes, position: int, base_offset: Offset, base_timestamp: int) -> tuple[Record, int]:
    length, position = read_varint(data, position)
    end = position + length
    if length < 0 or end > len(data):
        raise CorruptData(f"a record of {length} bytes where {len(data) - position} are left")
    # The attributes of a record are a byte that nothing uses.
    timestamp_delta, position = read_varint(data, position + 1)
    offset_delta, position = read_varint(data, position)
    key, position = _read_bytes(data, position, end)
    value, position = _read_bytes(data, position, end)
    headers: Sequence[Header] = ()
    if data[position]:
        headers, position = _read_headers(data, position, end)
    else:
        position += 1
    if position != end:
        raise CorruptData("a record's length and content disagree")
    return Record(base_offset + offset_delta, base_timestamp + timestamp_delta, key, value, headers), end


def _read_headers(data: bytes, position: int, end: int) -> tuple[list[Header], int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= end - position:
        raise CorruptData(f"{count} record headers do not fit into {end - position} bytes")
    headers = []
    for _ in range(count):
        key, position = _read_bytes(data, position, end)
        value, position = _read_bytes(data, position, end)
        if key is None:
            raise CorruptData("a record header has no key")
        headers.append((key.decode(), value))
    return headers, position


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    stop = position + length
    if length < 0:
        if length != -1:
            raise CorruptData(f"a length of {length}")
        return None, position
    if stop > end:
        raise CorruptData(f"a field of {length} bytes where {end - position} are left in the record")
    return data[position:stop], stop


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """A zigzag number and the position after it. Raises `IndexError` past the end."""
    byte = data[position]
    if byte < 0x80:  # most are that small
        return (byte >> 1) ^ -(byte & 1), position + 1
    number = byte & 0x7F
    shift = 7
    while byte & 0x80:
        if shift >= _VARINT_BITS_MAX:
            raise CorruptData("a number takes more than ten bytes")
        position += 1
        byte = data[position]
        number |= (byte & 0x7F) << shift
        shift += 7
    if number >> _VARINT_BITS_MAX:
        raise CorruptData(f"a number takes more than {_VARINT_BITS_MAX} bits")
    return (number >> 1) ^ -(number & 1), position + 1
