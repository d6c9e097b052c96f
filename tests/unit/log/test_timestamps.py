from __future__ import annotations

import pytest

from zurau.records.builder import NewRecord
from zurau.records.compression import Compression


def test_the_first_record_as_late_as_asked_is_found(bench):
    bench.fill(25)
    assert [bench.log.find_by_timestamp(time, 25) for time in (0, 1000, 1013, 1024)] == [
        (0, 1000), (0, 1000), (13, 1013), (24, 1024),
    ]  # fmt: skip
    assert bench.log.find_by_timestamp(1025, 25) is None


@pytest.mark.parametrize("codec", list(Compression))
def test_a_record_within_a_packed_batch_is_found(bench, codec):
    records = [NewRecord(None, b"x", timestamp=time) for time in (50, 10, 70, 30)]
    bench.append(*records, compression=codec)
    assert bench.log.find_by_timestamp(60, 4) == (2, 70)
    assert bench.log.find_max_timestamp(4) == (2, 70)


def test_times_that_go_back_do_not_hide_a_later_one(bench):
    for time in (100, 900, 200, 300):
        bench.append(NewRecord(None, bytes(400), timestamp=time))
    assert (bench.log.find_by_timestamp(250, 4), bench.log.find_by_timestamp(901, 4)) == ((1, 900), None)


def test_what_is_not_committed_is_not_found(bench):
    bench.fill(25)
    assert bench.log.find_by_timestamp(1020, 20) is None
    assert bench.log.find_max_timestamp(15) == (14, 1014)


def test_what_was_deleted_is_not_found(bench):
    bench.fill(25)
    bench.log.advance_start(12)
    assert bench.log.find_by_timestamp(0, 25) == (12, 1012)


def test_the_first_of_several_latest_records_is_told(bench):
    for time in (5, 9, 9, 7):
        bench.append(NewRecord(None, bytes(400), timestamp=time))
    assert bench.log.find_max_timestamp(4) == (1, 9)


def test_an_empty_log_has_no_latest_record(bench):
    assert (bench.log.find_max_timestamp(0), bench.log.find_by_timestamp(0, 0)) == (None, None)
