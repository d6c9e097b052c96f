from __future__ import annotations

import struct

import pytest

from zurau.errors import CorruptData
from zurau.records.batch import HEADER_BYTES, parse_header
from zurau.records.builder import NewRecord, build_batch, pack_batch, repack, write_varint
from zurau.records.compression import Compression, decompress
from zurau.records.record import iter_records, read_varint

RECORDS = [
    NewRecord(b"key", b"value", [("trace", b"1"), ("empty", b""), ("null", None)], timestamp=50),
    NewRecord(None, b"", timestamp=40),
    NewRecord(b"", None, timestamp=60),
    NewRecord("grün".encode(), b"x" * 300, [("naïve", b"\xff")], timestamp=2**41),
]


def with_payload(payload: bytes, count: int = 1) -> bytearray:
    """A batch whose checksum is right and whose records are these bytes."""
    header = parse_header(build_batch([NewRecord(None, None, timestamp=0)] * count))
    return pack_batch(header, payload)


def record(body: bytes) -> bytes:
    output = bytearray()
    write_varint(output, len(body))
    return bytes(output + body)


@pytest.mark.parametrize("codec", list(Compression))
def test_records_come_out_as_they_went_in(codec):
    batch = build_batch(RECORDS, base_offset=100, compression=codec)
    found = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in iter_records(batch)]
    assert found == [
        (100 + delta, new.timestamp, new.key, new.value, tuple(new.headers)) for delta, new in enumerate(RECORDS)
    ]


def test_an_empty_batch_that_compaction_left_has_no_records():
    header = parse_header(build_batch(RECORDS, compression=Compression.ZSTD))
    batch = pack_batch(type(header)(*(getattr(header, name) for name in header.__struct_fields__[:-1]), 0), b"")
    assert (list(iter_records(batch)), len(batch)) == ([], HEADER_BYTES)


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        (b"\x01" * 10, "a record of -1 bytes"),
        (b"\x7e" + bytes(9), "where 9 are left"),
        (record(bytes(6)) + b"??", "follow the last record"),
        (record(bytes(7)), "length and content disagree"),
        (record(b"\0\0\0\x05\0\0\0"), "a length of -3"),
        (record(b"\0\0\0\x70\0\0\0"), "a field of 56 bytes"),
        (record(b"\0\0\0\0\0\x70\0"), "56 record headers do not fit"),
        (record(b"\0\0\0\0\0\x02\x01\x01"), "has no key"),
        (record(b"\0\0\0\0\0\x02\x02\xff\x01"), "not UTF-8"),
        (b"\xff" * 20, "more than ten bytes"),
        (b"\x80" * 9, "runs over the end"),
    ],
)
def test_bytes_that_cannot_be_records_are_refused(payload, complaint):
    with pytest.raises(CorruptData, match=complaint):
        list(iter_records(with_payload(payload)))


def test_more_records_than_bytes_are_refused_before_any_is_read():
    with pytest.raises(CorruptData, match="do not fit"):
        list(iter_records(with_payload(bytes(20), count=1000)))


def test_batches_of_other_versions_are_refused():
    batch = build_batch(RECORDS)
    batch[16] = 1
    with pytest.raises(CorruptData, match="version 1"):
        list(iter_records(batch))


def test_a_batch_cut_short_is_refused():
    with pytest.raises(CorruptData, match="cut short"):
        list(iter_records(build_batch(RECORDS)[:-1]))


def test_unpacking_stops_at_the_limit():
    batch = build_batch([NewRecord(None, bytes(100_000), timestamp=0)], compression=Compression.ZSTD)
    with pytest.raises(CorruptData, match="more than 50000"):
        list(iter_records(batch, limit_bytes=50_000))


@pytest.mark.parametrize("number", [0, 1, -1, 63, -64, 64, 300, -300, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1])
def test_numbers_of_any_size_come_back(number):
    output = bytearray()
    write_varint(output, number)
    assert read_varint(bytes(output), 0) == (number, len(output))


def test_a_batch_without_records_is_not_built():
    with pytest.raises(AssertionError):
        build_batch([])


@pytest.mark.parametrize("codec", list(Compression))
def test_a_batch_packed_anew_holds_the_same_records(codec):
    batch = build_batch(RECORDS, base_offset=7, compression=Compression.GZIP, producer_id=3)
    payload = decompress(batch[HEADER_BYTES:], Compression.GZIP, 1_000_000)
    packed = repack(parse_header(batch), payload, codec)
    assert parse_header(packed).compression == codec
    assert list(iter_records(packed)) == list(iter_records(batch))


def test_the_length_on_the_wire_counts_what_follows_it():
    batch = build_batch(RECORDS)
    assert struct.unpack_from(">i", batch, 8)[0] == len(batch) - 12
