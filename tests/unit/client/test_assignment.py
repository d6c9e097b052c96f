"""What members tell each other, and how partitions are dealt out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zurau.client.groups.assignment import (
    assign_ranges,
    assigned_partitions,
    encode_assignment,
    encode_subscription,
    subscribed_topics,
)
from zurau.ids import TopicPartition


def partitions(topic: str, *indexes: int) -> list[TopicPartition]:
    return [TopicPartition(topic, index) for index in indexes]


def test_a_subscription_is_read_back():
    assert subscribed_topics(encode_subscription(["b", "a"])) == ["a", "b"]


def test_an_assignment_is_read_back():
    share = partitions("a", 0, 2) + partitions("b", 1)
    assert assigned_partitions(encode_assignment(share)) == share


def test_no_bytes_are_no_assignment():
    assert assigned_partitions(b"") == []


def test_the_first_members_get_what_is_left_over():
    shares = assign_ranges({"m2": ["a"], "m1": ["a"]}, {"a": 5}.__getitem__)
    assert shares == {"m1": partitions("a", 0, 1, 2), "m2": partitions("a", 3, 4)}


def test_each_topic_is_dealt_by_itself():
    shares = assign_ranges({"m1": ["a", "b"], "m2": ["b"]}, {"a": 2, "b": 2}.__getitem__)
    assert shares == {"m1": partitions("a", 0, 1) + partitions("b", 0), "m2": partitions("b", 1)}


def test_members_beyond_the_partitions_get_nothing():
    assert assign_ranges({"m1": ["a"], "m2": ["a"]}, {"a": 1}.__getitem__)["m2"] == []


@given(st.integers(0, 50), st.integers(1, 12))
def test_every_partition_has_exactly_one_owner(partition_count, member_count):
    shares = assign_ranges({f"m{number}": ["a"] for number in range(member_count)}, lambda _: partition_count)
    dealt = [partition for share in shares.values() for partition in share]
    assert sorted(dealt) == partitions("a", *range(partition_count))
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1
