"""What comes from the disk is checked before it is passed on; what is in memory is not."""

from __future__ import annotations

import pytest

from zurau.errors import CorruptData
from zurau.log import cold_reads
from zurau.log.cold_reads import ColdReads
from zurau.ports import WouldBlock
from zurau.records.batch import first_wrong

FILE = "logs/t-0/00000000000000000000.log"
#: Each batch has 100 bytes: the last byte of the batch with offset 5.
IN_PAYLOAD = 599


@pytest.fixture
def bench(make_bench):
    """Ten batches in one segment."""
    bench = make_bench(segment_bytes=1 << 20, index_interval_bytes=0)
    bench.fill(10)
    bench.flush()
    return bench


def read(log, offset: int, max_bytes: int = 10_000) -> bytes:
    """As a fetch does: in memory, or else in a worker."""
    try:
        return log.read(offset, max_bytes, log.end_offset)
    except WouldBlock:
        return log.read(offset, max_bytes, log.end_offset, may_block=True)


def test_a_changed_payload_is_named_and_what_lies_around_it_is_served(bench, caplog):
    bench.disk.flip_bit(FILE, IN_PAYLOAD)
    bench.disk.forget_cached()
    assert len(read(bench.log, 0)) == 500
    (damage,) = bench.log.damage
    assert (damage.first_offset, damage.next_offset) == (5, 6)
    assert "offset 5 damaged" in caplog.text
    with pytest.raises(CorruptData, match="go on at 6"):
        read(bench.log, 5)
    assert len(read(bench.log, 6)) == 400


@pytest.mark.parametrize("byte", [500, 507])
def test_a_changed_offset_is_found_though_no_checksum_covers_it(bench, byte):
    bench.disk.flip_bit(FILE, byte)
    bench.disk.forget_cached()
    assert len(read(bench.log, 0)) == 500
    with pytest.raises(CorruptData, match="go on at 6"):
        read(bench.log, 5)
    assert len(read(bench.log, 6)) == 400


def test_what_the_system_has_read_ahead_is_checked_too(bench):
    bench.open()
    bench.disk.flip_bit(FILE, IN_PAYLOAD)
    bench.disk.forget_cached()
    assert len(read(bench.log, 0, 200)) == 200  # and now everything is in memory
    assert [len(read(bench.log, offset, 200)) for offset in (2, 4)] == [200, 100]
    with pytest.raises(CorruptData):
        read(bench.log, 5)


def test_what_is_in_memory_is_passed_on_as_it_is(bench):
    bench.disk.flip_bit(FILE, IN_PAYLOAD)
    assert len(read(bench.log, 0)) == 1000
    assert not bench.log.damage


def test_much_that_is_in_memory_is_not_checked_in_a_worker_either(bench, monkeypatch):
    monkeypatch.setattr(cold_reads, "SURELY_COLD_BYTES", 100)
    bench.disk.flip_bit(FILE, IN_PAYLOAD)
    assert len(bench.log.read(0, 10_000, 10, may_block=True)) == 1000
    bench.disk.forget_cached()
    assert len(bench.log.read(0, 10_000, 10, may_block=True)) == 500


def test_damage_is_found_that_came_after_the_file_was_looked_through(bench):
    bench.log._segments[0].find_damage()
    bench.disk.flip_bit(FILE, IN_PAYLOAD)
    bench.disk.forget_cached()
    assert len(read(bench.log, 0)) == 500


class InMemory:
    def is_in_memory(self, position: int, length: int) -> bool:
        return True


def is_checked_from(reads: ColdReads, start: int) -> bool:
    try:
        return reads.is_cold(InMemory(), start, start + 1, may_block=False)
    except WouldBlock:
        return True


@pytest.mark.parametrize(("lag", "is_checked"), [(cold_reads.RECENT_BYTES, False), (cold_reads.RECENT_BYTES + 1, True)])
def test_reads_return_to_the_loop_where_they_reach_what_was_just_written(lag, is_checked):
    reads = ColdReads(found_bytes=0)
    reads.ended(0, 1000, 1000 + lag)
    assert is_checked_from(reads, 1000) is is_checked


def test_reads_return_to_the_loop_at_the_end_of_what_was_there():
    reads = ColdReads(found_bytes=1000)
    reads.ended(0, 999, 1000)
    assert is_checked_from(reads, 999)
    reads.ended(999, 1000, 1000)
    assert not is_checked_from(reads, 999)
    assert not is_checked_from(reads, 1000)


def test_places_of_many_readers_are_remembered_and_of_very_many_the_last():
    reads = ColdReads(found_bytes=1 << 20)
    for number in range(1, 2 * cold_reads.REMEMBERED_ENDS):
        reads.ended(0, number, 1 << 20)
    assert is_checked_from(reads, 2 * cold_reads.REMEMBERED_ENDS - 1)
    assert len(reads._ends) <= cold_reads.REMEMBERED_ENDS + 1


def test_the_first_wrong_batch_is_found_in_bytes_that_end_anywhere(bench):
    batches = bench.read_all()
    assert first_wrong(batches) is None
    assert first_wrong(batches[:-1]) == 900
    assert first_wrong(batches + bytes(10)) == 1000
    assert first_wrong(batches[:200] + bytes(100) + batches[300:]) == 200
    for offset in (2, 4, 10, -1):
        assert first_wrong(batches[:300] + offset.to_bytes(8, "big", signed=True) + batches[308:], 10) in (300, 400)
    for length in (-13, 10, 1 << 30):
        assert first_wrong(batches[:308] + length.to_bytes(4, "big", signed=True) + batches[312:]) == 300


def test_a_version_that_the_disk_changed_is_found_though_no_checksum_covers_it(bench):
    bench.fill(3)
    batches = bytearray(bench.read_all())
    assert first_wrong(batches) is None
    batches[100 + 16] = 0
    assert first_wrong(batches) == 100
