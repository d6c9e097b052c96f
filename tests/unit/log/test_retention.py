from __future__ import annotations

import pytest

from zurau.records.builder import NewRecord

HOUR_MS = 3_600_000


def test_segments_whose_newest_record_is_too_old_go(make_bench):
    bench = make_bench(retention_ms=100)
    bench.fill(25)  # timestamps 1000 to 1024; segments end at 1009, 1019 and are open from 1020 on
    assert bench.log.expire(1115, 25) == 1
    assert (bench.log.start_offset, len(bench.records())) == (10, 15)


def test_one_late_record_keeps_its_segment_and_all_after_it(make_bench):
    bench = make_bench(retention_ms=100)
    bench.append(NewRecord(None, bytes(600), timestamp=5000))
    bench.fill(20)
    assert bench.log.expire(2000, 21) == 0


def test_an_expired_log_is_emptied_but_keeps_its_place(make_bench, disk):
    bench = make_bench(retention_ms=100)
    bench.fill(25)
    bench.flush()
    assert bench.log.expire(HOUR_MS, 25) == 3
    bench.remove()
    assert (bench.log.start_offset, bench.log.end_offset, bench.names(".log")) == (25, 25, [])
    disk.crash()
    assert bench.open(clean=False).end_offset == 25
    bench.fill(1)
    assert [record.offset for record in bench.records()] == [25]


def test_a_start_that_is_written_down_beforehand_lets_old_segments_go_without_a_flush(make_bench, disk, monkeypatch):
    bench = make_bench(retention_ms=100)
    bench.fill(25)
    bench.flush()
    assert bench.log.start_to_write_down(HOUR_MS, 25) == 25
    bench.log.advance_start(25)
    assert bench.log.start_to_write_down(HOUR_MS, 25) is None
    with monkeypatch.context() as patched:
        patched.setattr(disk, "replace_file", None)
        patched.setattr(disk, "flush_directory", None)
        assert bench.log.expire(HOUR_MS, 25) == 3
    disk.crash()
    assert bench.open(clean=False).end_offset == 25


def test_where_safe_segments_stay_no_start_has_to_be_written_down(make_bench):
    bench = make_bench(retention_ms=1000)
    bench.fill(20, timestamp=1000)
    bench.fill(5, timestamp=HOUR_MS)
    bench.flush()
    assert bench.log.start_to_write_down(HOUR_MS, 25) is None
    assert bench.log.expire(HOUR_MS, 25) == 2


def test_the_oldest_segments_go_when_the_log_is_too_large(make_bench):
    bench = make_bench(retention_bytes=1500)
    bench.fill(35)
    assert bench.log.expire(0, 35) == 2
    assert bench.log.size_bytes == 1500


def test_size_counts_whole_segments_only(make_bench):
    bench = make_bench(retention_bytes=1501)
    bench.fill(25)
    assert bench.log.expire(0, 25) == 0


def test_nothing_goes_that_is_not_committed(make_bench):
    bench = make_bench(retention_ms=100)
    bench.fill(25)
    assert [bench.log.expire(HOUR_MS, upto) for upto in (9, 10, 19, 20)] == [0, 1, 0, 1]


def test_minus_one_means_for_ever(make_bench):
    bench = make_bench(retention_ms=-1, retention_bytes=-1)
    bench.fill(25)
    assert bench.log.expire(HOUR_MS, 25) == 0


def test_a_compacted_topic_loses_nothing_to_age(make_bench):
    bench = make_bench(cleanup_policy=("compact",), retention_ms=100, retention_bytes=100)
    bench.fill(25)
    assert bench.log.expire(HOUR_MS, 25) == 0


def test_segments_without_timestamps_are_as_old_as_the_log_is_open(make_bench):
    bench = make_bench(retention_ms=100)
    bench.open(now_ms=5000)
    for _ in range(25):
        bench.append(NewRecord(None, bytes(32)))
    assert [bench.log.expire(now_ms, 25) for now_ms in (5100, 5101)] == [0, 3]


@pytest.mark.parametrize("clean", [True, False])
def test_ages_are_known_after_a_restart(make_bench, clean):
    bench = make_bench(retention_ms=100)
    bench.fill(25)
    bench.log.close(clean=clean)
    bench.open(clean=clean)
    assert bench.log.expire(1115, 25) == 1


def test_a_reader_of_what_just_expired_is_told_the_new_range(make_bench):
    bench = make_bench(retention_ms=100)
    bench.fill(25)
    bench.log.expire(1115, 25)
    assert bench.log.epochs.marks[0].start_offset == 10
    assert bench.names(".deleted") == [f"{0:020}.log.deleted"]
