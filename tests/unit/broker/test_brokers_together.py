"""Three whole brokers that are told of each other, in one world: clients ask in real frames, brokers talk in frames."""

from __future__ import annotations

from dataclasses import replace

import pytest
from three_brokers import IDS, Cluster

from zurau.broker.voter_changes import ROOM_BYTES, SETTLED_WITHIN_MS
from zurau.errors import FlushFailed, Refused
from zurau.ids import BrokerId, TopicPartition
from zurau.machines.controller.commands import ReserveBrokerId
from zurau.simulation.client import SimulatedClient
from zurau.wire.kafka.error_codes import ErrorCode


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.pass_time(10_000)
    return cluster


def test_brokers_that_are_told_of_each_other_are_one_cluster(cluster):
    assert all(node.opened.is_done and node.opened.error is None for node in cluster.nodes.values())
    for node in cluster.nodes.values():
        brokers = node.broker.image.brokers.values()
        assert sorted((broker.broker_id, broker.is_fenced) for broker in brokers) == [
            (1, False),
            (2, False),
            (3, False),
        ]


def test_the_metadata_quorum_grows_to_three(cluster):
    voters = {node.broker.metadata.partition.shell.core.voters for node in cluster.nodes.values()}
    assert [len(each) for each in voters] == [3]


def test_brokers_are_ready_when_their_cluster_bears_the_loss_of_one():
    cluster = Cluster()
    nodes = cluster.nodes.values()
    for _ in range(10_000):
        if all(node.opened.is_done for node in nodes):
            break
        cluster.pass_time(1)
    assert len(cluster.nodes[BrokerId(1)].broker.metadata.partition.shell.core.voters) == 3
    cluster.nodes[BrokerId(1)].lose_power()
    cluster.pass_time(5000)
    assert cluster.create("t", replication_factor=2, at=2) == ErrorCode.NONE


def test_a_broker_does_not_wait_for_ever_for_those_that_should_vote():
    cluster = Cluster()
    while not all(node.broker.broker_epoch >= 0 for node in cluster.nodes.values()):
        cluster.pass_time(1)
    founder = cluster.nodes[BrokerId(1)]  # with too little room for another voter, and enough for the rest
    founder.disk.capacity_bytes = founder.disk.used_bytes + ROOM_BYTES // 2
    cluster.pass_time(SETTLED_WITHIN_MS + 10_000)
    assert all(node.opened.is_done for node in cluster.nodes.values())


def test_members_are_registered_or_about_to_be(cluster):
    given = cluster.nodes[BrokerId(1)].broker.controller.submit(ReserveBrokerId(bytes([9] * 16)))
    cluster.pass_time(2000)
    assert given.result() == 4
    for node in cluster.nodes.values():
        assert [each for each in range(-1, 9) if node.broker.metadata.is_member(BrokerId(each))] == [1, 2, 3, 4]


@pytest.mark.parametrize("at", IDS)
def test_a_topic_can_be_created_at_any_broker_and_is_seen_there_at_once(cluster, at):
    assert cluster.create("t", at=at) == ErrorCode.NONE
    assert "t" in cluster.nodes[at].broker.image.topics


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_what_is_acknowledged_survives_the_death_of_the_leader(cluster, mode):
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(2000)
    assert [cluster.produce("t", value) for value in (b"a", b"b")] == [ErrorCode.NONE] * 2
    cluster.leader_of("t").lose_power()
    cluster.pass_time(8000)
    assert cluster.produce("t", b"c") == ErrorCode.NONE
    assert cluster.read("t") == [b"a", b"b", b"c"]


def test_the_controller_dies_and_another_decides(cluster):
    cluster.nodes[1].lose_power()
    cluster.pass_time(8000)
    assert cluster.create("t", replication_factor=2, at=2) == ErrorCode.NONE


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_all_lose_power_and_nothing_acknowledged_is_lost(cluster, mode):
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(2000)
    assert cluster.produce("t", b"a") == ErrorCode.NONE
    for node in cluster.nodes.values():
        node.lose_power()
    for node in cluster.nodes.values():
        node.start()
    cluster.pass_time(15_000)
    assert cluster.read("t") == [b"a"]
    assert cluster.produce("t", b"b") == ErrorCode.NONE


def test_groups_move_with_the_leader_of_their_partition(cluster):
    cluster.create("t")
    cluster.pass_time(2000)
    cluster.produce("t", b"a")
    partition = cluster.nodes[1].broker.groups.partition_of("readers")
    name = f"{partition.topic}"
    leader = next(n for n in cluster.nodes.values() if n.broker.partitions[partition].is_established)
    assert SimulatedClient(leader).commit("t", 1) == ErrorCode.NONE, name
    leader.lose_power()
    cluster.pass_time(8000)
    successor = next(
        n for n in cluster.nodes.values() if n.broker is not None and n.broker.partitions[partition].is_established
    )
    assert SimulatedClient(successor).committed("t") == 1


def test_a_replica_that_has_lost_what_it_promised_begins_anew_under_another_name(cluster):
    cluster.create("t")
    cluster.pass_time(2000)
    assert [cluster.produce("t", value) for value in (b"a", b"b")] == [ErrorCode.NONE] * 2
    cluster.pass_time(2000)
    damaged = next(node for node in cluster.nodes.values() if node is not cluster.leader_of("t"))
    damaged.lose_power()
    damaged.disk.open("t-0/00000000000000000000.log").truncate(0)
    damaged.start()
    cluster.pass_time(10_000)
    image = cluster.leader_of("t").broker.image.topics["t"].partitions[0]
    assert image.replica_on(damaged.id).directory != damaged.broker.identity.directory_name
    assert set(cluster.leader_of("t").broker.partitions["t", 0].shell.core.voters) == set(image.replica_ids)
    stored = damaged.broker.partitions["t", 0]
    assert (stored.high_watermark, stored.log.damage) == (
        cluster.leader_of("t").broker.partitions["t", 0].high_watermark,
        [],
    )


def test_who_is_alone_in_sync_keeps_what_nobody_else_has_until_others_are(cluster):
    cluster.create("t", replication_mode="isr", replication_factor=2)
    cluster.pass_time(2000)
    assert cluster.produce("t", b"a") == ErrorCode.NONE
    cluster.pass_time(2000)
    leader = cluster.leader_of("t")
    other = next(node for node in cluster.nodes.values() if node is not leader and ("t", 0) in node.broker.partitions)
    other.lose_power()
    cluster.pass_time(12_000)
    assert cluster.produce("t", b"b") == ErrorCode.NONE
    cluster.pass_time(2000)
    leader.lose_power()
    leader.disk.flip_bit("t-0/00000000000000000000.log", 30)
    leader.start()
    cluster.pass_time(12_000)
    kept = leader.broker.partitions["t", 0]
    assert ([one.first_offset for one in kept.log.damage], kept.high_watermark) == ([0], 2)
    other.start()
    cluster.pass_time(12_000)
    leader.lose_power()
    leader.start()
    cluster.pass_time(12_000)
    assert cluster.read("t") == [b"a", b"b"]
    assert not leader.broker.partitions["t", 0].log.damage


def test_a_leader_that_is_broken_is_none_where_others_can_lead(cluster):
    cluster.create("t")
    cluster.pass_time(2000)
    partition = cluster.leader_of("t").broker.partitions["t", 0]
    partition.require_leadership()
    partition.storage_fault(FlushFailed("the disk reports an error"))
    with pytest.raises(Refused) as caught:
        partition.require_leadership()
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_who_leads_no_more_sends_clients_to_look_for_the_coordinator(cluster):
    cluster.create("t")
    cluster.pass_time(1000)
    partition = cluster.nodes[1].broker.groups.partition_of("readers")
    follower = next(n for n in cluster.nodes.values() if not n.broker.partitions[partition].leads)
    assert SimulatedClient(follower).commit("t", 1) == ErrorCode.NOT_COORDINATOR


def test_a_broker_that_is_away_keeps_its_vote_on_the_metadata(cluster):
    cluster.nodes[3].lose_power()
    cluster.pass_time(20_000)
    leader = next(n for n in cluster.nodes.values() if n.broker is not None and n.broker.metadata.partition.leads)
    assert leader.broker.image.brokers[3].is_fenced
    assert len(leader.broker.metadata.partition.shell.core.voters) == 3


@pytest.mark.parametrize(("mode", "wanted", "code"), [
    ("quorum", "2", ErrorCode.NONE), ("quorum", "3", ErrorCode.NONE), ("isr", "3", ErrorCode.NONE),
    ("quorum", "4", ErrorCode.NOT_ENOUGH_REPLICAS),
])  # fmt: skip
def test_acks_all_promises_as_many_copies_as_the_topic_asks_for_or_nothing(cluster, mode, wanted, code):
    cluster.create("t", replication_mode=mode, min_insync_replicas=wanted)
    cluster.pass_time(3000)
    assert cluster.produce("t", b"a") == code


@pytest.fixture
def on_all(cluster):
    """A topic of which acks=all promises three copies, and who follows its leader."""
    cluster.create("t", min_insync_replicas="3")
    cluster.pass_time(3000)
    leader = cluster.leader_of("t")
    return cluster, leader, [node for node in cluster.nodes.values() if node is not leader]


def write_one(leader):
    """With acks=1; the offset behind it."""
    client = SimulatedClient(leader)
    result = client.produce("t", client.batch(b"a"), acks=1)
    assert result.error_code == ErrorCode.NONE
    return result.base_offset + 1


def test_more_than_a_majority_is_refused_when_one_is_down_and_taken_when_it_is_back(on_all):
    cluster, leader, (first, _) = on_all
    first.lose_power()
    cluster.pass_time(3000)
    assert cluster.produce("t", b"a") == ErrorCode.NOT_ENOUGH_REPLICAS
    assert write_one(leader) > 0
    first.start()
    cluster.pass_time(10_000)
    assert cluster.produce("t", b"c") == ErrorCode.NONE


def test_what_a_majority_has_is_committed_and_not_acknowledged_until_the_third_has_it(on_all):
    cluster, leader, (first, _) = on_all
    partition = leader.broker.partitions["t", 0]
    first.lose_power()
    end = write_one(leader)
    waiting = partition.wait_replicated(end)
    cluster.pass_time(500)
    assert (partition.high_watermark, waiting.is_done) == (end, False)
    first.start()
    cluster.pass_time(10_000)
    assert waiting.is_done
    assert first.broker.partitions["t", 0].log.end_offset == end


def test_who_waits_for_all_is_acknowledged_when_the_topic_asks_for_a_majority(on_all):
    cluster, leader, (first, _) = on_all
    partition = leader.broker.partitions["t", 0]
    first.lose_power()
    end = write_one(leader)
    waiting = partition.wait_replicated(end)
    cluster.pass_time(500)
    partition.settings_changed(replace(partition.log.settings, min_insync_replicas=2))
    assert waiting.is_done


def test_consumers_read_from_the_leader(cluster):
    cluster.create("t")
    cluster.pass_time(2000)
    follower = next(node for node in cluster.nodes.values() if node is not cluster.leader_of("t"))
    assert SimulatedClient(follower).fetch("t").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_without_room_on_its_disk_leaves_its_voters_as_they_are_until_there_is():
    cluster = Cluster()
    first = cluster.nodes[BrokerId(1)]
    first.disk.capacity_bytes = first.disk.used_bytes + 200_000
    cluster.pass_time(10_000)
    metadata = first.broker.metadata.partition
    assert metadata.is_only_voter
    assert not metadata.is_broken
    first.disk.capacity_bytes = 1 << 30
    cluster.pass_time(20_000)
    assert len(metadata.shell.core.membership.voters) == 3


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_a_replica_that_lost_its_disk_has_at_no_time_the_name_under_which_it_was_counted(cluster, mode):
    cluster.create("orders", replication_mode=mode)
    cluster.pass_time()
    node = cluster.nodes[BrokerId(2)]
    old = node.broker.identity.directory_name
    node.lose_disk()
    cluster.pass_time(3000)
    node.start()
    for _ in range(3000):
        cluster.pass_time(1)
        assert old not in {partition.shell.core.id.directory for partition in node.broker.partitions.values()}
    assert TopicPartition("orders", 0) in node.broker.partitions


@pytest.mark.parametrize("broker_id", IDS)
@pytest.mark.parametrize("harm", ["empty", "missing", "flipped"])
def test_damaged_metadata_is_fetched_anew_by_a_replica_of_another_name(cluster, broker_id, harm, caplog):
    cluster.create("t")
    cluster.pass_time()
    assert cluster.produce("t", b"a value") == ErrorCode.NONE
    node = cluster.nodes[broker_id]
    before = node.broker.metadata.partition.shell.core.id
    node.lose_power()
    segment = "__cluster_metadata-0/00000000000000000000.log"
    if harm == "missing":
        node.disk.remove_tree("__cluster_metadata-0")
    elif harm == "empty":
        node.disk.open(segment).truncate(0)
    else:
        node.disk.flip_bit(segment, 80)
    cluster.pass_time(5000)
    node.start()
    assert "fetched anew" in caplog.text
    core = node.broker.metadata.partition.shell.core
    assert core.id != before
    assert core.id not in core.voters
    cluster.pass_time(10_000)
    assert node.opened.is_done
    assert node.opened.error is None
    assert "t" in node.broker.image.topics
    assert cluster.read("t") == [b"a value"]
    for other in cluster.nodes.values():
        voters = other.broker.metadata.partition.shell.core.voters
        assert core.id in voters
        assert before not in voters
    # Its other replicas have lost nothing, and are who they were.
    assert node.broker.partitions["t", 0].shell.core.id.directory == node.broker.identity.directory_name
    node.lose_power()
    node.start()
    assert node.broker.metadata.partition.shell.core.id == core.id
