from __future__ import annotations

from zurau.chaos.downtime import Downtime, longest_gap_s, summarised


def test_a_gap_that_begins_before_the_fault_counts_whole():
    assert longest_gap_s([0.0, 1.0, 2.0, 5.0, 6.0], begin_s=2.5, end_s=6.0) == 3.0


def test_gaps_that_end_before_the_fault_do_not_count():
    assert longest_gap_s([0.0, 9.0, 9.5, 10.0], begin_s=9.2, end_s=10.0) == 0.5


def test_a_gap_that_ends_after_the_time_looked_at_counts_whole():
    assert longest_gap_s([0.0, 1.0, 8.0], begin_s=0.5, end_s=3.0) == 7.0


def test_a_partition_that_never_came_back_was_down_until_the_end():
    assert longest_gap_s([0.0, 1.0], begin_s=0.5, end_s=30.0) == 29.0


def test_a_partition_that_was_never_written_to_was_down_all_the_time():
    assert longest_gap_s([], begin_s=1.0, end_s=4.0) == 3.0


def test_a_summary_has_the_median_the_slowest_hundredth_and_the_worst():
    assert summarised([number / 100 for number in range(1, 201)]) == Downtime(1.0, 1.98, 2.0)


def test_nothing_measured_is_not_zero():
    assert summarised([]) is None
