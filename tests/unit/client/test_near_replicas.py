"""Followers of one's own rack, as leaders have named them."""

from __future__ import annotations

from zurau.client.consumer.near_replicas import NAMED_FOR_S, NearReplicas
from zurau.ids import BrokerId, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_replica_that_was_named_is_read_from_until_it_is_time_to_ask_again():
    now_s = 100.0
    near = NearReplicas(lambda: now_s)
    near.name(T0, BrokerId(2))
    assert (near.find(T0), near.find(T1)) == (2, None)
    now_s += NAMED_FOR_S
    assert near.find(T0) is None


def test_whoever_is_in_trouble_is_forgotten_of_all_its_partitions():
    near = NearReplicas(lambda: 0.0)
    near.name(T0, BrokerId(2))
    near.name(T1, BrokerId(2))
    assert near.forget([T0, T1])
    assert (near.find(T0), near.find(T1)) == (None, None)
    assert not near.forget([T0, T1])
