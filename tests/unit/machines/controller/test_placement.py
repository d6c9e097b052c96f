from __future__ import annotations

from collections import Counter

import pytest

from zurau.errors import Refused
from zurau.ids import BrokerId, TopicId
from zurau.machines.controller.commands import CreatePartitions, CreateTopic
from zurau.machines.controller.image import BrokerImage
from zurau.machines.controller.placement import place
from zurau.wire.kafka.error_codes import ErrorCode

A_TOPIC_ID = TopicId(bytes(16))


def brokers(*racks):
    """Brokers numbered from 1, in these racks."""
    return {
        number: BrokerImage(BrokerId(number), bytes(16), bytes(16), broker_epoch=number, rack=rack)
        for number, rack in enumerate(racks, 1)
    }


THREE, FOUR, FIVE = (brokers(*[None] * count) for count in (3, 4, 5))


def test_leaders_are_spread_evenly():
    placed = place(THREE, A_TOPIC_ID, range(9), replication_factor=2)
    assert Counter(partition.replicas[0] for partition in placed) == {1: 3, 2: 3, 3: 3}


def test_no_broker_holds_a_partition_twice():
    placed = place(FIVE, A_TOPIC_ID, range(40), replication_factor=5)
    assert all(len(set(partition.replicas)) == 5 for partition in placed)


def test_the_partitions_of_one_leader_have_different_followers():
    placed = place(FOUR, A_TOPIC_ID, range(12), replication_factor=2)
    assert {partition.replicas[1] for partition in placed if partition.replicas[0] == 1} == {2, 3, 4}


def test_topics_start_at_different_brokers():
    leaders = {place(THREE, TopicId(bytes([0, 0, 0, n]) + bytes(12)), range(1), 1)[0].replicas for n in range(3)}
    assert leaders == {(1,), (2,), (3,)}


def test_partitions_that_are_added_later_continue_the_pattern():
    at_once = place(THREE, A_TOPIC_ID, range(7), replication_factor=2)
    in_two_steps = place(THREE, A_TOPIC_ID, range(4), 2) + place(THREE, A_TOPIC_ID, range(4, 7), 2)
    assert at_once == in_two_steps


def test_replicas_are_in_as_many_racks_as_there_are():
    racks = ["north", "north", "north", "south", "east", "east"]
    placed = place(brokers(*racks), A_TOPIC_ID, range(60), replication_factor=3)
    assert all({racks[broker - 1] for broker in each.replicas} == {"north", "south", "east"} for each in placed)


def test_a_rack_holds_a_second_replica_only_when_every_rack_has_one():
    racks = ["north", "north", "north", "south"]
    placed = place(brokers(*racks), A_TOPIC_ID, range(12), replication_factor=3)
    assert all({racks[broker - 1] for broker in partition.replicas} == {"north", "south"} for partition in placed)


def test_leaders_are_spread_over_brokers_whatever_racks_they_are_in():
    placed = place(brokers("north", "north", "south"), A_TOPIC_ID, range(9), replication_factor=2)
    assert Counter(partition.replicas[0] for partition in placed) == {1: 3, 2: 3, 3: 3}


def test_brokers_without_a_rack_are_placed_among_those_that_have_one():
    placed = place(brokers(None, "north", "north", None), A_TOPIC_ID, range(12), replication_factor=3)
    assert not [partition for partition in placed if {2, 3} <= set(partition.replicas)]


def test_replicas_placed_by_hand_stay_where_they_were_put(cluster_of):
    cluster = cluster_of(3)
    topic = cluster.ask(CreateTopic("orders", A_TOPIC_ID, assignments={0: [3, 1], 1: [2, 3]}))
    assert [partition.replicas for partition in topic.partitions] == [(3, 1), (2, 3)]


@pytest.mark.parametrize(
    "assignments",
    [{0: [1, 1]}, {0: [9]}, {0: []}, {1: [1]}, {0: [1], 2: [2]}, {0: [1], 1: [1, 2]}],
    ids=["twice", "unknown broker", "nobody", "not from zero", "a gap", "uneven"],
)
def test_a_broken_assignment_is_refused(cluster_of, assignments):
    with pytest.raises(Refused) as caught:
        cluster_of(3).ask(CreateTopic("orders", A_TOPIC_ID, assignments=assignments))
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_an_assignment_to_brokers_that_are_all_fenced_is_refused(cluster_of):
    cluster = cluster_of(3)
    cluster.lose_sight_of(1, 2)
    with pytest.raises(Refused) as caught:
        cluster.ask(CreateTopic("orders", A_TOPIC_ID, assignments={0: [1, 2]}))
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_an_assignment_with_counts_besides_is_refused(cluster):
    with pytest.raises(Refused) as caught:
        cluster.ask(CreateTopic("orders", A_TOPIC_ID, 1, -1, assignments={0: [1]}))
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_added_partitions_are_placed_by_hand_in_order(cluster_of):
    cluster = cluster_of(3)
    cluster.ask(CreateTopic("orders", A_TOPIC_ID, 1, 2))
    cluster.ask(CreatePartitions("orders", 3, assignments=[[3, 2], [1, 3]]))
    assert [partition.replicas for partition in cluster.image.topics["orders"].partitions[1:]] == [(3, 2), (1, 3)]


@pytest.mark.parametrize("assignments", [[[1, 2]], [[1, 2], [3]], []], ids=["too few", "uneven", "none"])
def test_added_partitions_need_as_many_replicas_as_the_others(cluster_of, assignments):
    cluster = cluster_of(3)
    cluster.ask(CreateTopic("orders", A_TOPIC_ID, 1, 2))
    with pytest.raises(Refused) as caught:
        cluster.ask(CreatePartitions("orders", 3, assignments=assignments))
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
