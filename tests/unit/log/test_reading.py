"""Reading a log: whole batches, any offset, any limit, and what is wrong with them."""

from __future__ import annotations

import pytest

from zurau.errors import CorruptData, OffsetOutOfRange
from zurau.log import segment
from zurau.ports import WouldBlock
from zurau.records.builder import NewRecord

LOG_0 = "logs/t-0/00000000000000000000.log"


@pytest.mark.parametrize("max_bytes", [1, 99, 150, 1000, 100_000])
def test_any_limit_reads_the_same_bytes_in_the_end(bench, max_bytes):
    batches = bench.fill(25)
    assert bench.read_all(max_bytes) == b"".join(batches)


def test_the_first_batch_comes_even_if_it_is_over_the_limit(bench):
    (batch,) = bench.fill(1, size=500)
    assert bench.log.read(0, 1, 1) == batch


def test_whole_batches_come_as_far_as_the_limit_allows(bench):
    first, second, _ = bench.fill(3)
    assert bench.log.read(0, len(first) + len(second) + 1, 3) == first + second


@pytest.mark.parametrize("window", [1, 200, 8192])
def test_what_is_cut_in_memory_is_what_is_found_by_looking_first(make_bench, monkeypatch, window):
    bench = make_bench(segment_bytes=3000)
    for number in range(30):
        records = [NewRecord(None, bytes(37 * number % 190), timestamp=1) for _ in range(1 + number % 3)]
        bench.append(*records)
    bench.flush()
    end = bench.log.end_offset
    monkeypatch.setattr(segment, "WALK_BYTES", window)
    asked = [
        (offset, limit, upto) for offset in range(end) for limit in range(1, 1200, 61) for upto in (offset + 3, end)
    ]
    cut = [bench.log.read(*each) for each in asked]
    monkeypatch.setattr(segment, "AT_ONCE_BYTES", 0)
    assert cut == [bench.log.read(*each) for each in asked]


def test_nothing_at_or_above_the_bound_is_read(bench):
    batches = bench.fill(9)
    assert [bench.log.read(0, 10_000, upto) for upto in (0, 1, 5)] == [b"", batches[0], b"".join(batches[:5])]


def test_a_batch_that_reaches_over_the_bound_is_not_read(bench):
    bench.append(*[NewRecord(None, b"x", timestamp=1)] * 5)
    assert bench.log.read(0, 1000, 3) == b""


def test_a_read_from_within_a_batch_begins_with_that_batch(bench):
    batch = bench.append(*[NewRecord(None, b"x", timestamp=1)] * 5)
    assert bench.log.read(3, 1000, 5) == batch


def test_a_read_goes_over_an_empty_stretch_at_the_end_of_a_segment(make_bench):
    bench = make_bench(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, segment_bytes=200)
    for number in range(6):
        bench.append(NewRecord(b"same", bytes(60), timestamp=number))
    bench.flush()
    assert bench.compact()
    assert [record.offset for record in bench.records()] == [4, 5]


@pytest.mark.parametrize("offset", [-1, 4, 100])
def test_offsets_outside_the_log_are_refused(bench, offset):
    bench.fill(3)
    with pytest.raises(OffsetOutOfRange, match="holds 0 to 3"):
        bench.log.read(offset, 100, 3)


def test_bytes_that_are_not_in_memory_are_not_waited_for(bench, disk):
    batches = bench.fill(3)
    disk.forget_cached()
    with pytest.raises(WouldBlock):
        bench.log.read(0, 1000, 3)
    assert bench.log.read(0, 1000, 3, may_block=True) == b"".join(batches)


def test_what_is_before_the_damage_is_read_even_if_more_was_asked_for(make_bench, disk):
    bench = make_bench(index_interval_bytes=10_000)
    batches = bench.fill(5)
    disk.flip_bit(LOG_0, 208)  # the length of the third batch
    assert bench.log.read(0, 350, 5, may_block=True) == b"".join(batches[:2])


def test_damage_that_breaks_the_chain_of_batches_is_told_on_reading(bench, disk):
    bench.fill(5)
    disk.flip_bit(LOG_0, 108, bit=6)  # the length of the second batch
    with pytest.raises(CorruptData, match="damaged from offset 1 to 1; go on at 2"):
        bench.log.read(1, 100, 5, may_block=True)


def test_whoever_may_not_wait_does_not_look_for_damage(bench, disk):
    bench.fill(5)
    disk.flip_bit(LOG_0, 108, bit=6)
    with pytest.raises(WouldBlock):
        bench.log.read(1, 100, 5)


def test_a_file_that_lost_its_end_is_told_on_reading(bench, disk):
    batches = bench.fill(5)
    disk.open(LOG_0).truncate(450)
    assert bench.log.read(0, 10_000, 5, may_block=True) == b"".join(batches[:4])
    with pytest.raises(CorruptData, match="damaged from offset 4 to 4"):
        bench.log.read(4, 10_000, 5)


def test_headers_are_told_from_any_offset_on(bench):
    bench.fill(25)
    assert [header.base_offset for header in bench.log.headers(7)] == list(range(7, 25))
