from __future__ import annotations

import struct

import pytest

from zurau.errors import CorruptData
from zurau.records.batch import (
    HEADER_BYTES,
    check_crc,
    iter_batches,
    parse_header,
    stamp,
    stamp_append_time,
    walked_end,
)
from zurau.records.builder import NewRecord, build_batch
from zurau.records.compression import Compression
from zurau.records.record import iter_records


@pytest.fixture
def batch() -> bytearray:
    records = [NewRecord(b"k", b"v%d" % number, timestamp=1000 + number) for number in range(3)]
    return build_batch(
        records, leader_epoch=4, compression=Compression.GZIP, producer_id=7, producer_epoch=2, base_sequence=30
    )


def test_a_header_says_what_the_batch_was_built_of(batch):
    header = parse_header(batch)
    assert (header.base_offset, header.length, header.leader_epoch, header.magic) == (0, len(batch), 4, 2)
    assert (header.base_timestamp, header.max_timestamp, header.record_count) == (1000, 1002, 3)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 30)
    assert (header.last_offset, header.next_offset, header.compression) == (2, 3, Compression.GZIP)
    assert (header.is_control, header.is_transactional, header.uses_append_time) == (False, False, False)
    assert header.delete_horizon_ms is None


def test_a_header_is_found_at_any_position(batch):
    assert parse_header(b"before" + batch, 6) == parse_header(batch)


@pytest.mark.parametrize("size", [0, 1, HEADER_BYTES - 1])
def test_too_few_bytes_are_no_header(batch, size):
    with pytest.raises(CorruptData, match="61 bytes"):
        parse_header(batch[:size])


def test_a_length_shorter_than_the_header_is_no_batch(batch):
    batch[8:12] = (10).to_bytes(4)
    with pytest.raises(CorruptData, match="less than its header"):
        parse_header(batch)


def test_batches_are_walked_one_by_one(batch):
    found = [(header.next_offset, bytes(one)) for header, one in iter_batches(batch * 2)]
    assert found == [(3, bytes(batch)), (3, bytes(batch))]


def test_stamping_a_place_leaves_the_checksum_right(batch):
    header = stamp(memoryview(batch), 5_000_000_000, 9)
    assert (header.base_offset, header.leader_epoch, header.next_offset) == (5_000_000_000, 9, 5_000_000_003)
    assert check_crc(batch, header)


def test_stamping_can_be_done_in_the_middle_of_a_buffer(batch):
    two = bytearray(batch + batch)
    stamp(two, 77, 1, position=len(batch))
    assert [parse_header(two, position).base_offset for position in (0, len(batch))] == [0, 77]


def test_the_time_of_the_append_replaces_all_timestamps(batch):
    stamp_append_time(batch, 999_999)
    header = parse_header(batch)
    assert header.uses_append_time
    assert check_crc(batch, header)
    assert {record.timestamp for record in iter_records(batch)} == {999_999}


@pytest.mark.parametrize("position", [21, 40, 60, 61, -1])
def test_a_flipped_bit_anywhere_under_the_checksum_is_noticed(batch, position):
    batch[position] ^= 1
    assert not check_crc(batch, parse_header(batch))


def test_a_batch_that_is_cut_short_does_not_match_its_checksum(batch):
    assert not check_crc(batch[:-1], parse_header(batch))


def test_kinds_of_batches_are_told_apart():
    marker = build_batch([NewRecord(b"\0\0\0\1", b"", timestamp=0)], is_control=True, is_transactional=True)
    header = parse_header(marker)
    assert (header.is_control, header.is_transactional) == (True, True)


@pytest.mark.parametrize(("length", "end"), [(None, 3), (-12, 1), (-(2**31), 1), (0, 1), (48, 1), (2**31 - 1, 2)])
def test_batches_are_walked_up_to_a_length_that_cannot_be(length, end):
    batches = b"".join(build_batch([NewRecord(None, b"v", timestamp=1)], base_offset=offset) for offset in range(3))
    damaged = bytearray(batches)
    if length is not None:
        struct.pack_into(">i", damaged, len(batches) // 3 + 8, length)
    assert walked_end(damaged) == end
