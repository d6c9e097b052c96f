"""Making batches: for the broker's own logs, for the client, and for what compaction leaves over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from zurau.ids import NO_PRODUCER_ID, Epoch, Offset, ProducerId
from zurau.ports import Buffer
from zurau.records.batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    seal,
)
from zurau.records.compression import Compression, compress
from zurau.records.record import Header

NO_TIMESTAMP = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1


class NewRecord(NamedTuple):
    """A record that has no place in a log yet."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()
    timestamp: int = NO_TIMESTAMP


def build_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: Offset = 0,
    leader_epoch: Epoch = 0,
    compression: int = Compression.NONE,
    producer_id: ProducerId = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytearray:
    """One batch of consecutive offsets, sealed; stamp it if its place is not known yet."""
    assert records, "a batch needs a record; only compaction leaves empty ones"
    base_timestamp = records[0].timestamp
    payload = bytearray()
    for delta, record in enumerate(records):
        encode_record(payload, delta, record.timestamp - base_timestamp, record.key, record.value, record.headers)
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=compression | is_transactional * TRANSACTIONAL_BIT | is_control * CONTROL_BIT,
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return pack_batch(header, payload)


def build_packed_batch(
    payload: Buffer,
    record_count: int,
    *,
    base_timestamp: int,
    max_timestamp: int,
    compression: int = Compression.NONE,
    producer_id: ProducerId = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
) -> bytearray:
    """One batch around records that are encoded already, with consecutive offsets."""
    header = BatchHeader(
        base_offset=0,
        length=0,
        leader_epoch=0,
        magic=MAGIC,
        crc=0,
        attributes=compression,
        last_offset_delta=record_count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=record_count,
    )
    return pack_batch(header, payload)


def pack_batch(header: BatchHeader, payload: Buffer) -> bytearray:
    """A batch of the header's facts around encoded records: compresses as it says, sets length and checksum."""
    attributes = header.attributes if payload else header.attributes & ~COMPRESSION_MASK
    packed = compress(payload, attributes & COMPRESSION_MASK)
    batch = bytearray(HEADER_BYTES + len(packed))
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        len(batch) - LENGTH_PREFIX_BYTES,
        header.leader_epoch,
        MAGIC,
        0,
        attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    batch[HEADER_BYTES:] = packed
    seal(batch)
    return batch


def repack(header: BatchHeader, payload: Buffer, codec: Compression) -> bytearray:
    """A batch of the same records under another codec; `payload` is what the old one unpacked to."""
    attributes = header.attributes & ~COMPRESSION_MASK | codec
    return pack_batch(msgspec.structs.replace(header, attributes=attributes), payload)


def encode_record(
    output: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[Header] = (),
) -> None:
    """Add one record, with its length before it."""
    body = bytearray(1)  # the attributes, which nothing uses
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    _write_bytes(body, key)
    _write_bytes(body, value)
    headers = list(headers)
    write_varint(body, len(headers))
    for name, content in headers:
        _write_bytes(body, name.encode())
        _write_bytes(body, content)
    write_varint(output, len(body))
    output += body


def encode_packed(output: bytearray, offset_delta: int, timestamp_delta: int, rest: Buffer) -> None:
    """Add one record of which everything behind the offset is encoded already, with its length before it."""
    body = bytearray(1)
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    write_varint(output, len(body) + len(rest))
    output += body
    output += rest


def write_varint(output: bytearray, number: int) -> None:
    """Add a zigzag number of up to 64 bits."""
    rest = (number << 1) ^ (number >> 63)
    while rest > 0x7F:
        output.append(rest & 0x7F | 0x80)
        rest >>= 7
    output.append(rest)


def _write_bytes(output: bytearray, content: bytes | None) -> None:
    if content is None:
        write_varint(output, -1)
    else:
        write_varint(output, len(content))
        output += content
