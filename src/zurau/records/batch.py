"""The header of a record batch, version 2.

    base offset i64 | length i32 | leader epoch i32 | magic i8 | crc u32 | attributes i16 | last offset delta i32 |
    base timestamp i64 | max timestamp i64 | producer id i64 | producer epoch i16 | base sequence i32 | count i32

The length on the wire counts what follows it; ours counts the whole batch, because that is what everybody adds to a
position. The CRC-32C covers everything from the attributes on, so a leader stamps offset and epoch without touching
it. Attribute bits: 0-2 compression, 3 append time, 4 transactional, 5 control, 6 delete horizon (then the base
timestamp is the time at which the batch's tombstones may go, KIP-534).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec
from fastcrc import crc32

from zurau.errors import CorruptData
from zurau.ids import Epoch, Offset, ProducerId
from zurau.ports import Buffer
from zurau.settings import INT64_MAX

HEADER_BYTES = 61
MAGIC = 2
#: Bytes before and including the length field: what the length on the wire does not count.
LENGTH_PREFIX_BYTES = 12
#: Where the checksummed part begins.
CHECKED_FROM = 21

APPEND_TIME_BIT = 1 << 3
TRANSACTIONAL_BIT = 1 << 4
CONTROL_BIT = 1 << 5
DELETE_HORIZON_BIT = 1 << 6
COMPRESSION_MASK = 0x07

HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH = struct.Struct(">8xi")
_PLACE_AND_CRC = struct.Struct(">qi4xbI2xi")
#: Base offset, length, leader epoch.
_PLACE = struct.Struct(">qii")
_CRC = struct.Struct(">I")
_CRC_AT = 17
_ATTRIBUTES = struct.Struct(">h")
_ATTRIBUTES_AT = CHECKED_FROM
_MAX_TIMESTAMP = struct.Struct(">q")
_MAX_TIMESTAMP_AT = 35

assert HEADER.size == HEADER_BYTES


class BatchHeader(msgspec.Struct, gc=False):
    """What a broker needs to know of a batch. `length` is the bytes of the whole batch, header included.

    Nobody changes one but `place`, together with the batch.
    """

    base_offset: Offset
    length: int
    leader_epoch: Epoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: ProducerId
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> Offset:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> Offset:
        """The offset after this batch. Not base + count: compaction leaves holes."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """The number of the codec; see `Compression`."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def uses_append_time(self) -> bool:
        """Whether all records have the time of the append, `max_timestamp`, instead of their own."""
        return self.attributes & APPEND_TIME_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones in this batch may be dropped, or None before its first compaction."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


def parse_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`. Does not judge its magic or checksum, nor whether the whole batch is there."""
    try:
        fields = HEADER.unpack_from(buffer, position)
    except struct.error:
        raise CorruptData(f"a batch header takes {HEADER_BYTES} bytes; {len(buffer) - position} are left") from None
    header = BatchHeader(*fields)
    header.length += LENGTH_PREFIX_BYTES
    if header.length < HEADER_BYTES:
        raise CorruptData(f"a batch claims to be {header.length} bytes long, which is less than its header")
    return header


def iter_batches(batches: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Each of some whole batches with its header, in order; nothing is copied."""
    view = memoryview(batches)
    position = 0
    while position < len(view):
        header = parse_header(view, position)
        yield header, view[position : position + header.length]
        position += header.length


def walked_end(batches: Buffer) -> Offset:
    """The offset after the last batch that can be walked to, from header to header.

    Behind a length that cannot be nothing is looked for. Raises `CorruptData` if there is no first batch.
    """
    position, last = 0, 0
    while position + HEADER_BYTES <= len(batches):
        length = LENGTH_PREFIX_BYTES + _LENGTH.unpack_from(batches, position)[0]
        if length < HEADER_BYTES:
            break
        last = position
        position += length
    return parse_header(batches, last).next_offset


def check_crc(buffer: Buffer, header: BatchHeader, position: int = 0) -> bool:
    """Whether the whole batch is in `buffer` and its checksum is right."""
    checked = memoryview(buffer)[position + CHECKED_FROM : position + header.length]
    return len(checked) == header.length - CHECKED_FROM and crc32.iscsi(checked) == header.crc


def first_wrong(batches: Buffer, upto_offset: Offset = INT64_MAX) -> int | None:
    """Where in these whole batches the first begins whose checksum is wrong; or whose version is, or offsets, which
    that does not cover: they do not follow those before or are not below `upto_offset`. None if all are right."""
    position, view, iscsi = 0, memoryview(batches), crc32.iscsi
    expected = 0
    while position < len(view):
        if position + HEADER_BYTES > len(view):
            return position
        base_offset, length, magic, crc, delta = _PLACE_AND_CRC.unpack_from(view, position)
        stop = position + LENGTH_PREFIX_BYTES + length
        if not position + HEADER_BYTES <= stop <= len(view) or iscsi(view[position + CHECKED_FROM : stop]) != crc:
            return position
        if magic != MAGIC or not expected <= base_offset <= base_offset + delta < upto_offset:
            return position
        position, expected = stop, base_offset + delta + 1
    return None


def stamp(buffer: bytearray | memoryview, base_offset: Offset, leader_epoch: Epoch, position: int = 0) -> BatchHeader:
    """Give the batch its place in the log, in the buffer. Returns the header as it is now."""
    header = parse_header(buffer, position)
    place(buffer, header, base_offset, leader_epoch, position)
    return header


def place(
    buffer: bytearray | memoryview, header: BatchHeader, base_offset: Offset, leader_epoch: Epoch, position: int = 0
) -> None:
    """As `stamp`, of a batch whose header is parsed: it is changed with the buffer, and not parsed once more."""
    _PLACE.pack_into(buffer, position, base_offset, header.length - LENGTH_PREFIX_BYTES, leader_epoch)
    header.base_offset = base_offset
    header.leader_epoch = leader_epoch


def stamp_create_time(buffer: bytearray | memoryview, max_timestamp: int) -> None:
    """Let the records' own timestamps count, of which this is the largest, in place. The checksum is made anew."""
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, _ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(buffer, _ATTRIBUTES_AT, attributes & ~APPEND_TIME_BIT)
    _MAX_TIMESTAMP.pack_into(buffer, _MAX_TIMESTAMP_AT, max_timestamp)
    seal(buffer)


def stamp_append_time(buffer: bytearray | memoryview, now_ms: int) -> None:
    """Replace the records' timestamps by one for the batch, in place. The checksum covers it and is made anew."""
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, _ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(buffer, _ATTRIBUTES_AT, attributes | APPEND_TIME_BIT)
    _MAX_TIMESTAMP.pack_into(buffer, _MAX_TIMESTAMP_AT, now_ms)
    seal(buffer)


def seal(buffer: bytearray | memoryview) -> None:
    """Write the checksum of a buffer that holds exactly one batch."""
    _CRC.pack_into(buffer, _CRC_AT, crc32.iscsi(memoryview(buffer)[CHECKED_FROM:]))
