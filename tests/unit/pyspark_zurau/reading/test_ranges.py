from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.options.offsets import from_json, to_json
from pyspark_zurau.reading.ranges import Range, divide, take_share
from zurau.ids import TopicPartition

A0, A1, A10 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("a", 10)


def sizes(ranges: list[Range]) -> list[int]:
    return [part.size for part in ranges]


def test_offsets_are_written_in_one_order_whatever_order_they_came_in():
    document = to_json({A10: 3, TopicPartition("b", 0): 4, A1: 2})
    assert list(document) == ["a", "b"]
    assert list(document["a"]) == ["1", "10"]


def test_offsets_survive_the_way_through_a_checkpoint():
    offsets = {A10: 3, A1: 2}
    assert from_json(to_json(offsets)) == offsets


def test_a_trigger_takes_from_each_partition_in_proportion_to_its_backlog():
    ends = take_share(100, {A0: 0, A1: 50}, {A0: 300, A1: 150})
    assert ends == {A0: 75, A1: 75}


def test_a_small_partition_is_not_starved_by_a_large_one():
    assert take_share(10, {A0: 0, A1: 0}, {A0: 1_000_000, A1: 1})[A1] == 1


def test_a_trigger_never_takes_more_than_there_is():
    assert take_share(1000, {A0: 0, A1: 5}, {A0: 3, A1: 5}) == {A0: 3, A1: 5}


def test_each_partition_is_one_task_when_nothing_else_is_asked():
    ranges = [Range(A0, 0, 10), Range(A1, 5, 5)]
    assert divide(ranges, min_partitions=None, max_records=None) == [Range(A0, 0, 10)]


def test_no_task_gets_more_records_than_allowed():
    parts = divide([Range(A0, 100, 125), Range(A1, 0, 3)], min_partitions=None, max_records=10)
    assert sizes(parts) == [8, 8, 9, 3]


def test_parts_follow_each_other_without_gaps():
    parts = divide([Range(A0, 7, 1000)], min_partitions=9, max_records=None)
    assert len(parts) == 9
    assert [part.start for part in parts] == [7, *(part.end for part in parts[:-1])]
    assert parts[-1].end == 1000


def test_large_partitions_are_divided_until_there_are_enough_tasks():
    parts = divide([Range(A0, 0, 900), Range(A1, 0, 10)], min_partitions=4, max_records=None)
    assert sizes(parts) == [300, 300, 300, 10]


def test_enough_partitions_are_left_as_they_are():
    ranges = [Range(A0, 0, 900), Range(A1, 0, 10)]
    assert divide(ranges, min_partitions=2, max_records=None) == ranges


def test_a_range_is_not_divided_into_more_parts_than_it_has_records():
    assert sizes(divide([Range(A0, 0, 2)], min_partitions=10, max_records=None)) == [1, 1]
