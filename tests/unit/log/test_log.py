from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from zurau.epochs import EpochMark, Position
from zurau.errors import DiskFault, OffsetOutOfRange
from zurau.node.disk import RealDisk
from zurau.records.batch import parse_header, stamp
from zurau.records.builder import NewRecord, build_batch
from zurau.settings import INT32_MAX

LOG_0 = "logs/t-0/00000000000000000000.log"


def test_a_new_log_is_empty_and_costs_no_files(bench):
    assert (bench.log.start_offset, bench.log.end_offset, bench.log.size_bytes) == (0, 0, 0)
    assert (bench.names(), bench.log.read(0, 100, 0)) == ([], b"")


def test_what_is_appended_is_read_back_byte_for_byte(bench):
    batches = bench.fill(25)
    assert (bench.read_all(), bench.log.end_offset) == (b"".join(batches), 25)


def test_a_log_tells_its_offsets_and_its_size(bench):
    batches = bench.fill(25)
    assert (bench.log.start_offset, bench.log.end_offset, bench.log.flushed_offset) == (0, 25, 0)
    assert bench.log.size_bytes == sum(map(len, batches))


# Rolling


def test_a_segment_is_rolled_when_it_is_full(bench):
    bench.fill(25)
    assert bench.names(".log") == [f"{base:020}.log" for base in (0, 10, 20)]


def test_a_segment_is_rolled_when_its_records_span_too_much_time(make_bench):
    bench = make_bench(segment_ms=100)
    for timestamp in (1000, 1100, 1101, 1102):
        bench.append(NewRecord(None, b"", timestamp=timestamp))
    assert bench.names(".log") == [f"{base:020}.log" for base in (0, 2)]


def test_the_age_of_a_reopened_segment_counts_from_its_first_batch(make_bench):
    bench = make_bench(segment_ms=100)
    bench.append(NewRecord(None, b"", timestamp=1000))
    bench.log.close()
    bench.open()
    bench.append(NewRecord(None, b"", timestamp=1101))
    assert len(bench.names(".log")) == 2


def test_a_segment_is_rolled_when_its_index_is_full(make_bench):
    bench = make_bench(segment_bytes=1 << 20, segment_index_bytes=16)
    bench.fill(12)
    assert len(bench.names(".log")) == 2


def test_a_segment_is_rolled_when_offsets_go_too_far(bench):
    bench.fill(1)
    for offset in (INT32_MAX, INT32_MAX + 1):
        batch = build_batch([NewRecord(None, b"", timestamp=1)])
        bench.log.append(batch, stamp(batch, offset, 0))
    assert bench.names(".log") == [f"{base:020}.log" for base in (0, INT32_MAX + 1)]


def test_an_empty_log_can_begin_at_any_offset(bench):
    batch = build_batch([NewRecord(None, b"", timestamp=1)])
    bench.log.append(batch, stamp(batch, 1 << 40, 0))
    assert (bench.names(".log"), bench.log.end_offset) == ([f"{1 << 40:020}.log"], (1 << 40) + 1)


# Faults


def test_a_full_disk_refuses_and_changes_nothing(bench, disk):
    batches = bench.fill(3)
    disk.capacity_bytes = disk.used_bytes + 50
    with pytest.raises(DiskFault, match="full"):
        bench.fill(1)
    assert (bench.read_all(), bench.log.end_offset) == (b"".join(batches), 3)
    disk.capacity_bytes += 1000
    assert bench.read_all() + bench.fill(1)[0] == bench.read_all()


def test_a_full_disk_does_not_lose_the_place_when_rolling(bench, disk):
    bench.fill(10)
    disk.capacity_bytes = disk.used_bytes
    for _ in range(2):
        with pytest.raises(DiskFault):
            bench.fill(1)
    disk.capacity_bytes += 1000
    bench.fill(1)
    assert [header.base_offset for header in bench.log.headers(0)] == list(range(11))


def test_after_a_failed_flush_nothing_more_is_written_but_reads_go_on(bench, disk):
    batches = bench.fill(3)
    disk.fail_flushes = True
    with pytest.raises(DiskFault):
        bench.flush()
    disk.fail_flushes = False
    with pytest.raises(DiskFault, match="takes no more writes"):
        bench.fill(1)
    assert bench.log.begin_flush() is None
    assert (bench.read_all(), bench.log.flushed_offset) == (b"".join(batches), 0)
    bench.log.close()
    assert bench.open(clean=False).end_offset == 3


# Flushing


def test_a_flush_covers_what_was_appended_before_it_began(bench):
    bench.fill(3)
    work = bench.log.begin_flush()
    bench.fill(2)
    work()
    bench.log.flush_done()
    assert (bench.log.flushed_offset, bench.log.end_offset) == (3, 5)


def test_flushes_may_overlap_and_end_in_order(bench):
    bench.fill(3)
    first = bench.log.begin_flush()
    bench.fill(2)
    second = bench.log.begin_flush()
    first()
    bench.log.flush_done()
    assert bench.log.flushed_offset == 3
    second()
    bench.log.flush_done()
    assert bench.log.flushed_offset == 5


def test_there_is_nothing_to_flush_twice(bench):
    bench.fill(3)
    bench.flush()
    assert bench.log.begin_flush() is None


def test_rolled_segments_ask_for_a_flush_and_get_their_indexes(bench):
    bench.fill(5)
    bench.flush()
    assert (bench.log.needs_flush, bench.names("index")) == (False, [])
    bench.fill(10)
    assert bench.log.needs_flush
    bench.flush()
    assert bench.names("index") == [f"{0:020}.index", f"{0:020}.timeindex"]


def test_a_flush_makes_new_files_and_epochs_safe(bench, disk):
    batches = bench.fill(25, epoch=6)
    bench.flush()
    disk.crash()
    bench.open(clean=False)
    assert (bench.read_all(), bench.log.epochs.last) == (b"".join(batches), 6)


def test_an_epoch_without_records_is_flushed_too(bench, disk):
    bench.fill(3)
    bench.log.mark(EpochMark(9, 3))
    bench.flush()
    disk.crash()
    assert bench.open(clean=False).position == (9, 3)


def test_a_segment_that_goes_while_it_is_flushed_does_not_fail_the_flush(make_bench):
    bench = make_bench(retention_bytes=100)
    bench.fill(25)
    work = bench.log.begin_flush()
    assert bench.log.expire(0, 25) == 2
    work()
    bench.log.flush_done()
    assert bench.log.flushed_offset == 25


def test_many_index_entries_are_written_out_before_the_segment_is_rolled(make_bench):
    bench = make_bench(segment_bytes=1 << 30, index_interval_bytes=0)
    bench.fill(4500)
    assert bench.log.needs_flush
    bench.flush()
    assert bench.names(".index") == [f"{0:020}.index"]
    assert bench.log.read(4321, 1, 4500) == bench.log.read(4321, 100, 4322)


def test_indexes_that_do_not_fit_on_the_disk_wait_until_there_is_room(bench, disk):
    bench.fill(15)
    disk.capacity_bytes = disk.used_bytes + 10  # room for the epochs
    work = bench.log.begin_flush()
    work()
    bench.log.flush_done()
    assert (bench.log.flushed_offset, bench.names(".index")) == (15, [])
    bench.log.close()
    disk.capacity_bytes += 1000
    bench.open()
    assert (bench.log.end_offset, bench.names(".index")) == (15, [f"{0:020}.index"])


def test_a_log_closed_during_a_flush_is_safe_all_the_same(bench, disk):
    bench.fill(15)
    bench.log.begin_flush()
    bench.log.close()
    bench.log.flush_done()
    disk.crash()
    assert bench.open(clean=True).end_offset == 15


# Truncating


@pytest.mark.parametrize("offset", [0, 1, 9, 10, 11, 24])
def test_what_is_truncated_is_gone_and_the_log_goes_on_from_there(bench, disk, offset):
    batches = bench.fill(25)
    bench.flush()
    bench.log.truncate(Position(9, offset))
    assert (bench.log.end_offset, bench.read_all()) == (offset, b"".join(batches[:offset]))
    disk.crash()
    bench.open(clean=False)
    more = bench.fill(15)
    assert bench.read_all() == b"".join(batches[:offset] + more)


def test_truncating_within_a_batch_takes_the_whole_batch(bench):
    bench.fill(2)
    bench.append(*[NewRecord(None, b"x", timestamp=1)] * 5)
    bench.log.truncate(Position(9, 4))
    assert bench.log.end_offset == 2


def test_truncating_at_the_end_changes_nothing(bench):
    bench.fill(3)
    bench.log.truncate(Position(9, 3))
    assert bench.log.end_offset == 3


def test_truncating_forgets_later_epochs(bench):
    for epoch in (1, 2, 3):
        bench.fill(2, epoch=epoch)
    bench.log.truncate(Position(9, 3))
    assert [tuple(entry) for entry in bench.log.epochs.marks] == [(1, 0), (2, 2)]


def test_a_log_can_start_over_at_another_offset(bench, disk):
    bench.fill(25)
    bench.flush()
    bench.log.restart(EpochMark(5, 100))
    disk.crash()
    log = bench.open(clean=False)
    assert (log.start_offset, log.position, bench.read_all()) == (100, Position(5, 100), b"")
    assert (bench.fill(1, epoch=5), log.end_offset) == ([bench.read_all()], 101)


def test_a_log_that_begins_in_the_middle_of_a_batch_begins_with_all_of_it(bench, disk):
    bench.log.restart(EpochMark(5, 100))
    batch = build_batch([NewRecord(None, b"deleted"), NewRecord(None, b"there")])
    bench.log.append(batch, stamp(batch, 99, 5))
    bench.flush()
    disk.crash()
    log = bench.open(clean=False)
    assert (log.start_offset, log.end_offset, bench.read_all()) == (100, 101, bytes(batch))


def test_truncating_at_the_end_forgets_the_mark_of_a_leader_that_wrote_nothing(bench, disk):
    bench.fill(3, epoch=1)
    bench.log.mark(EpochMark(4, 3))
    bench.flush()
    bench.log.truncate(Position(2, 3))
    disk.crash()
    assert bench.open(clean=False).position == Position(1, 3)


# Deleting from the front


def test_deleted_records_stay_deleted(bench, disk):
    batches = bench.fill(25)
    bench.flush()
    bench.log.advance_start(13)
    disk.crash()
    assert (bench.open(clean=False).start_offset, bench.read_all()) == (13, b"".join(batches[13:]))
    with pytest.raises(OffsetOutOfRange):
        bench.log.read(12, 100, 25)


def test_the_start_never_goes_back(bench):
    bench.fill(5)
    bench.log.advance_start(3)
    bench.log.advance_start(2)
    assert bench.log.start_offset == 3


def test_segments_before_the_start_go_with_the_next_expiry(bench):
    bench.fill(25)
    bench.log.advance_start(13)
    assert bench.log.expire(0, 25) == 1
    bench.remove()
    assert bench.names() == ["00000000000000000010.log", "00000000000000000020.log", "log-checkpoint"]


# The end


def test_a_clean_stop_needs_no_check_to_open(bench, disk):
    batches = bench.fill(25, epoch=3)
    bench.log.close()
    flushes = disk.flush_count
    bench.open(clean=True)
    assert (bench.read_all(), bench.log.flushed_offset, disk.flush_count) == (b"".join(batches), 25, flushes)
    assert bench.log.epochs.last == 3


# Threads


@pytest.fixture
def busy_threads() -> Iterator[None]:
    """Let threads take turns so often that they meet in the middle of everything."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("busy_threads")
def test_workers_read_while_the_loop_appends_rolls_compacts_and_expires(tmp_path, make_bench):
    bench = make_bench(
        disk=RealDisk(tmp_path, open_files_max=4),
        cleanup_policy=("compact", "delete"),
        segment_bytes=600,
        min_cleanable_dirty_ratio=0.0,
        retention_bytes=3000,
    )
    wrong: list[str] = []
    is_over = threading.Event()

    def read() -> None:
        offset = 0
        while not is_over.is_set():
            try:
                data = bench.log.read(offset, 500, bench.log.end_offset, may_block=True)
            except OffsetOutOfRange:
                offset = bench.log.start_offset
                continue
            if data and parse_header(data).last_offset < offset:
                wrong.append(f"asked for {offset}, got {parse_header(data)}")
            offset = parse_header(data).next_offset if data else bench.log.start_offset

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(200):
        bench.append(NewRecord(b"key %d" % (number % 20), bytes(30), timestamp=number))
        if number % 25 == 24:
            bench.flush()
            bench.compact()
            bench.log.expire(0, bench.log.end_offset)
            bench.remove()
    is_over.set()
    for reader in readers:
        reader.join()
    assert not wrong


def test_a_flush_takes_some_of_many_rolled_segments_and_the_next_goes_on(make_bench):
    bench = make_bench(segment_bytes=100)
    bench.fill(5)
    reached = []
    while (work := bench.log.begin_flush(2)) is not None and bench.log.flushed_offset < 5:
        work()
        bench.log.flush_done()
        reached.append(bench.log.flushed_offset)
    assert reached == [2, 4, 5]
    assert not bench.log.has_rolled


def test_many_segments_expire_some_at_a_time(make_bench, monkeypatch):
    monkeypatch.setattr("zurau.log.shrinking.EXPIRED_AT_ONCE", 2)
    bench = make_bench(segment_bytes=100, retention_ms=1)
    bench.fill(6)
    bench.flush()
    assert [bench.log.expire(10_000, 6) for _ in range(4)] == [2, 2, 2, 0]
    assert bench.log.start_offset == 6


def test_many_new_segments_are_compacted_some_at_a_time(make_bench, monkeypatch):
    monkeypatch.setattr("zurau.log.compacting.DIRTY_SEGMENTS_MAX", 2)
    bench = make_bench(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, segment_bytes=100)
    for number in range(7):
        bench.append(NewRecord(b"k", b"%d" % number, timestamp=1000))
    bench.flush()
    compacted = []
    while bench.compact():
        compacted.append(bench.log.compacted_offset)
    assert compacted == [2, 4, 6]
    assert [record.value for record in bench.records() if record.value is not None] == [b"5", b"6"]
