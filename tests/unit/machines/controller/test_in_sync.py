"""Leaders and in-sync sets in mode isr. The names of the tests say `in sync` for the set that the controller keeps."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.unit.machines.controller.conftest import ORDERS

from zurau.errors import Refused
from zurau.ids import BrokerId, PartitionId, ReplicaId, TopicId
from zurau.machines.controller.changes import PartitionStatesChanged
from zurau.machines.controller.commands import (
    AlterConfigs,
    ConfigEdit,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    RenameReplica,
    ReplaceConfigs,
    ResourceType,
)
from zurau.wire.kafka.error_codes import ErrorCode

ANOTHER_ID = TopicId(bytes([7]) * 16)


def refusal(ask, *arguments, **rest):
    with pytest.raises(Refused) as caught:
        ask(*arguments, **rest)
    return caught.value


@pytest.fixture
def cluster(cluster_of):
    """Three brokers; broker 1 leads a partition that is on all of them."""
    cluster = cluster_of(3)
    cluster.create_orders(1, 2, 3)
    return cluster


# New partitions


def test_a_new_partition_is_led_by_its_first_replica_and_all_are_in_sync(cluster):
    assert cluster.orders.leader == cluster.replica(1)
    assert (cluster.orders.leader_epoch, cluster.orders.partition_epoch) == (1, 0)
    assert cluster.in_sync() == [1, 2, 3]


def test_replicas_are_called_by_the_directory_of_their_broker(cluster):
    assert cluster.orders.directories == tuple(cluster.image.brokers[broker].directory_name for broker in (1, 2, 3))


def test_partitions_that_are_added_get_leaders_too(cluster):
    cluster.ask(CreatePartitions("orders", 3))
    topic = cluster.image.topics["orders"]
    assert [partition.leader.broker for partition in topic.partitions[1:]] == [
        partition.replicas[0] for partition in topic.partitions[1:]
    ]


def test_two_replicas_are_led_by_the_controller_unless_told_otherwise(cluster):
    pair = cluster.ask(CreateTopic("pair", ANOTHER_ID, 1, 2, validate_only=True))
    told = {"replication.mode": "quorum"}
    assert pair.is_in_sync_mode
    assert not cluster.ask(CreateTopic("pair", ANOTHER_ID, 1, 2, configs=told, validate_only=True)).is_in_sync_mode


@pytest.mark.parametrize("replication_factor", [1, 3])
def test_other_topics_elect_their_leaders_themselves(cluster, replication_factor):
    topic = cluster.ask(CreateTopic("other", ANOTHER_ID, 1, replication_factor))
    assert topic.configs == {}
    assert (topic.partitions[0].leader, topic.partitions[0].in_sync) == (None, ())


def test_a_replica_of_a_fenced_broker_is_not_in_sync_at_first(cluster_of):
    cluster = cluster_of(3)
    cluster.lose_sight_of(1)
    cluster.create_orders(1, 2, 3)
    assert cluster.in_sync() == [2, 3]
    assert cluster.orders.leader == cluster.replica(2)


def test_the_mode_of_a_topic_cannot_be_changed(cluster):
    edit = ConfigEdit("replication.mode", ConfigOperation.SET, "quorum")
    refused = refusal(cluster.ask, AlterConfigs(ResourceType.TOPIC, "orders", [edit]))
    assert refused.code is ErrorCode.INVALID_CONFIG
    assert "fixed" in refused.message


def test_whether_it_waits_for_flushes_cannot_be_changed(cluster):
    edit = ConfigEdit("flush", ConfigOperation.SET, "fsync")
    assert refusal(cluster.ask, AlterConfigs(ResourceType.TOPIC, "orders", [edit])).code is ErrorCode.INVALID_CONFIG


def test_replacing_all_configs_leaves_the_mode_as_it_is(cluster):
    cluster.ask(ReplaceConfigs(ResourceType.TOPIC, "orders", {"retention.ms": "5"}))
    assert cluster.image.topics["orders"].configs == {"replication.mode": "isr", "flush": "os", "retention.ms": "5"}


# Proposals of the leader


def test_a_leader_takes_a_replica_out_and_in_again(cluster):
    shrunk = cluster.alter(1, 2)
    assert [replica.broker for replica in shrunk.in_sync] == [1, 2]
    assert cluster.alter(1, 2, 3) == cluster.orders
    assert (cluster.orders.leader_epoch, cluster.orders.partition_epoch) == (1, 2)
    assert isinstance(cluster.changes[-1], PartitionStatesChanged)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"partition": PartitionId(ORDERS.topic_id, 1)}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": PartitionId(ANOTHER_ID, 0)}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"leader": ReplicaId(BrokerId(2), "x")}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"in_sync": (), "broker_epochs": ()}, ErrorCode.INVALID_REQUEST),
        ({"broker_epochs": (0,)}, ErrorCode.INVALID_REQUEST),
    ],
    ids=["partition", "topic", "leader epoch", "leader", "partition epoch", "empty", "too few epochs"],
)
def test_a_proposal_that_does_not_fit_the_partition_is_refused(cluster, changes, code):
    before = cluster.orders
    assert refusal(cluster.alter, 1, 2, **changes).code is code
    assert cluster.orders == before


def test_a_set_does_not_name_a_replica_twice(cluster):
    assert refusal(cluster.alter, 1, 2, 2).code is ErrorCode.INVALID_REQUEST


def test_a_topic_that_votes_has_no_set_to_change(cluster_of):
    cluster = cluster_of(1)
    cluster.create_orders(1, **{"replication.mode": "quorum"})
    assert refusal(cluster.alter, 1, leader=None).code is ErrorCode.INVALID_REQUEST


def test_a_broker_that_was_restarted_since_does_not_join(cluster):
    cluster.alter(1, 2)
    proposal = cluster.proposal(1, 2, 3)
    cluster.start(3)
    proposal = replace(proposal, partition_epoch=cluster.orders.partition_epoch)
    assert refusal(cluster.ask, proposal).code is ErrorCode.INELIGIBLE_REPLICA
    assert cluster.in_sync() == [1, 2]


def test_one_who_may_not_join_does_not_bar_the_others(cluster):
    cluster.alter(1)
    cluster.lose_sight_of(3)
    assert refusal(cluster.alter, 1, 2, 3).code is ErrorCode.INELIGIBLE_REPLICA
    assert cluster.in_sync() == [1, 2]


def test_one_who_may_not_join_keeps_nobody_who_lags(cluster):
    cluster.alter(1, 2)
    cluster.lose_sight_of(3)
    assert refusal(cluster.alter, 1, 3).code is ErrorCode.INELIGIBLE_REPLICA
    assert cluster.in_sync() == [1]


def test_what_was_refused_once_is_not_accepted_later(cluster):
    cluster.lose_sight_of(3)
    proposal = cluster.proposal(1, 2, 3)
    assert refusal(cluster.ask, proposal).code is ErrorCode.INELIGIBLE_REPLICA
    cluster.beat(3)
    assert refusal(cluster.ask, proposal).code is ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("who", [ReplicaId(BrokerId(9), "x"), ReplicaId(BrokerId(3), "x")], ids=["broker", "disk"])
def test_somebody_who_is_no_replica_does_not_join(cluster, who):
    in_sync = (cluster.replica(1), who)
    epochs = tuple(cluster.image.brokers[broker].broker_epoch for broker in (1, 3))
    refused = refusal(cluster.alter, in_sync=in_sync, broker_epochs=epochs)
    assert refused.code is ErrorCode.INELIGIBLE_REPLICA


def test_a_replica_that_its_broker_calls_failed_does_not_join(cluster):
    cluster.beat(3, failed=frozenset({ORDERS}))
    assert cluster.in_sync() == [1, 2]
    assert refusal(cluster.alter, 1, 2, 3).code is ErrorCode.INELIGIBLE_REPLICA


# Leaders that are gone


def test_a_silent_leader_is_replaced_and_leaves_the_set(cluster):
    cluster.lose_sight_of(1)
    assert cluster.orders.leader == cluster.replica(2)
    assert cluster.in_sync() == [2, 3]
    assert cluster.orders.leader_epoch == 2


def test_a_leader_whose_replica_failed_is_replaced(cluster):
    cluster.beat(1, failed=frozenset({ORDERS}))
    assert cluster.orders.leader == cluster.replica(2)
    assert not cluster.image.brokers[1].is_fenced


def test_the_last_one_stays_in_sync_dead_or_alive_and_leads_when_it_is_back(cluster):
    cluster.alter(1)
    cluster.lose_sight_of(1)
    assert (cluster.in_sync(), cluster.orders.leader) == ([1], None)
    cluster.beat(1)
    assert cluster.orders.leader == cluster.replica(1)
    assert cluster.orders.leader_epoch == 3  # 2 had no leader


def test_whoever_is_not_in_sync_never_leads(cluster):
    cluster.alter(1, 3)
    cluster.lose_sight_of(1)
    assert cluster.orders.leader == cluster.replica(3)


def test_of_those_in_sync_the_one_that_leads_the_fewest_takes_over(cluster):
    cluster.ask(CreateTopic("busy", ANOTHER_ID, assignments={0: [2, 3]}))
    cluster.lose_sight_of(1)
    assert cluster.orders.leader == cluster.replica(3)


def test_the_preferred_leader_takes_over_even_if_it_leads_more(cluster):
    cluster.lose_sight_of(1)
    cluster.beat(1)
    cluster.alter(1, 2, 3)
    cluster.ask(CreateTopic("busy", ANOTHER_ID, assignments={0: [1, 2], 1: [1, 2]}))
    cluster.lose_sight_of(2)
    assert cluster.orders.leader == cluster.replica(1)


def test_a_new_controller_elects_nobody_before_it_has_heard_of_them(cluster):
    cluster.alter(1)
    cluster.lose_sight_of(1)
    cluster.stage.restart()
    cluster.beat(2)
    assert cluster.orders.leader is None
    cluster.beat(1)
    assert cluster.orders.leader == cluster.replica(1)


def test_a_deleted_partition_is_not_looked_after(cluster):
    cluster.lose_sight_of(1, 2, 3)
    cluster.ask(DeleteTopic(ORDERS.topic_id))
    assert not cluster.image.leaderless
    assert not cluster.beat(1).is_fenced


# Restarts and losses


def test_a_leader_that_was_restarted_does_not_lead_the_same_epoch(cluster):
    cluster.start(1, previous_broker_epoch=cluster.image.brokers[1].broker_epoch)
    assert cluster.orders.leader == cluster.replica(2)
    assert cluster.in_sync() == [2, 3]


def test_after_clean_restarts_of_all_the_last_to_leave_leads(cluster):
    for broker in (2, 3, 1):
        cluster.register(broker, previous_broker_epoch=cluster.image.brokers[broker].broker_epoch)
    assert (cluster.in_sync(), cluster.orders.leader) == ([1], None)
    assert [replica.broker for replica in cluster.orders.eligible] == [2, 3]


def test_when_the_last_one_has_lost_something_whoever_left_before_it_takes_its_place(cluster):
    cluster.alter(1, 2)
    cluster.alter(1)
    cluster.start(1)
    assert cluster.in_sync() == [2]
    assert cluster.orders.leader == cluster.replica(2)
    assert [replica.broker for replica in cluster.orders.eligible] == [3]


def test_a_stop_is_clean_only_of_the_start_that_was_counted_last(cluster):
    cluster.alter(1, 2)
    old_epoch = cluster.image.brokers[1].broker_epoch
    cluster.start(1)
    cluster.alter(2)
    cluster.start(2, previous_broker_epoch=cluster.image.brokers[2].broker_epoch)
    assert cluster.in_sync() == [2]
    cluster.start(2, previous_broker_epoch=old_epoch)
    assert cluster.in_sync() == [3]


def test_nothing_is_lost_in_a_topic_that_waits_for_flushes(cluster_of):
    cluster = cluster_of(2)
    cluster.create_orders(1, 2, flush="fsync")
    cluster.register(1)
    cluster.register(2)
    cluster.beat(1)
    assert cluster.in_sync() == [2]
    assert [replica.broker for replica in cluster.orders.eligible] == [1]


def test_one_that_nobody_has_led_had_nothing_to_lose(cluster_of):
    cluster = cluster_of(1)
    cluster.stage.restart()
    cluster.create_orders(1)
    assert cluster.orders.leader_epoch == 0
    cluster.start(1, directory=1)
    assert cluster.orders.leader == cluster.replica(1)


# Names


def test_a_replica_that_lost_something_goes_on_under_another_name(cluster):
    before = cluster.replica(2)
    epoch = cluster.image.brokers[2].broker_epoch
    cluster.ask(RenameReplica(BrokerId(2), epoch, ORDERS, "other"))
    assert cluster.replica(2) == ReplicaId(BrokerId(2), "other")
    assert before not in (*cluster.orders.in_sync, *cluster.orders.eligible)
    assert cluster.in_sync() == [1, 3]


def test_a_leader_that_lost_something_is_replaced(cluster):
    epoch = cluster.image.brokers[1].broker_epoch
    cluster.ask(RenameReplica(BrokerId(1), epoch, ORDERS, "other"))
    assert cluster.orders.leader == cluster.replica(2)


def test_a_name_that_it_has_already_changes_nothing(cluster):
    before = cluster.orders
    epoch = cluster.image.brokers[2].broker_epoch
    cluster.ask(RenameReplica(BrokerId(2), epoch, ORDERS, before.directories[1]))
    assert cluster.orders == before


def test_the_last_one_that_lost_something_does_not_lead_under_its_new_name(cluster_of):
    cluster = cluster_of(1)
    cluster.create_orders(1)
    old = cluster.replica(1)
    cluster.ask(RenameReplica(BrokerId(1), cluster.image.brokers[1].broker_epoch, ORDERS, "other"))
    assert (cluster.orders.in_sync, cluster.orders.leader) == ((old,), None)
    cluster.start(1)
    assert (cluster.orders.in_sync, cluster.orders.leader) == ((old,), None)


def test_a_broker_with_another_disk_is_another_replica_everywhere(cluster):
    cluster.ask(CreateTopic("votes", ANOTHER_ID, assignments={0: [2, 1, 3]}))
    cluster.lose_sight_of(2)
    cluster.start(2, directory=9)
    name = cluster.image.brokers[2].directory_name
    assert cluster.replica(2) == ReplicaId(BrokerId(2), name)
    assert cluster.image.topics["votes"].partitions[0].directories[0] == name
    assert cluster.in_sync() == [1, 3]
    assert not cluster.orders.eligible


def test_before_anybody_has_led_a_new_name_stays_in_sync(cluster_of):
    cluster = cluster_of(2)
    cluster.stage.restart()
    cluster.create_orders(1, 2)
    cluster.ask(RenameReplica(BrokerId(2), cluster.image.brokers[2].broker_epoch, ORDERS, "other"))
    assert cluster.orders.in_sync == tuple(sorted(cluster.orders.replica_ids))
    assert not cluster.orders.eligible


@pytest.mark.parametrize(
    ("partition", "directory", "code"),
    [
        (PartitionId(ANOTHER_ID, 0), "x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ORDERS, "", ErrorCode.INVALID_REQUEST),
    ],
    ids=["unknown partition", "no name"],
)
def test_a_rename_that_means_nothing_is_refused(cluster, partition, directory, code):
    command = RenameReplica(BrokerId(2), cluster.image.brokers[2].broker_epoch, partition, directory)
    assert refusal(cluster.ask, command).code is code
