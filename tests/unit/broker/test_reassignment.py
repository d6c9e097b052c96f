"""Partitions move to other brokers while they are in use, in either mode."""

from __future__ import annotations

import pytest
from three_brokers import Cluster

from zurau.broker import metadata_snapshots
from zurau.errors import DiskFault
from zurau.ids import BrokerId, TopicPartition
from zurau.simulation.disk import SimulatedDisk
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from zurau.wire.kafka.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

MODES = pytest.mark.parametrize("mode", ["quorum", "isr"])
T = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.pass_time(10_000)
    return cluster


def replicas_of(cluster: Cluster) -> tuple[int, ...]:
    images = [node.broker.image for node in cluster.nodes.values() if node.broker is not None]
    (replicas,) = {image.topics["t"].partitions[0].replicas for image in images}
    return replicas


def holders(cluster: Cluster) -> set[int]:
    return {node.id for node in cluster.nodes.values() if node.broker is not None and T in node.broker.partitions}


def reassign(cluster: Cluster, *replicas: int, cancel: bool = False) -> int:
    wanted = ReassignablePartition(partition_index=0, replicas=None if cancel else list(replicas))
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=[wanted])])
    node = next(node for node in cluster.nodes.values() if node.broker is not None)
    return node.tell(request, 0).responses[0].partitions[0].error_code


def under_way(cluster: Cluster) -> list[tuple[list[int], list[int]]]:
    node = next(node for node in cluster.nodes.values() if node.broker is not None)
    answer = node.tell(ListPartitionReassignmentsRequest(), 0)
    return [(each.adding_replicas, each.removing_replicas) for topic in answer.topics for each in topic.partitions]


@MODES
def test_a_partition_moves_with_everything_it_holds(cluster, mode):
    cluster.create("t", replication_factor=1, replication_mode=mode)
    cluster.pass_time(1000)
    assert cluster.produce("t", b"a") == ErrorCode.NONE
    (before,) = replicas_of(cluster)
    after = before % 3 + 1
    assert reassign(cluster, after) == ErrorCode.NONE
    assert under_way(cluster) == [([after], [before])]
    cluster.pass_time(5000)
    assert replicas_of(cluster) == (after,)
    assert under_way(cluster) == []
    assert cluster.read("t") == [b"a"]
    assert cluster.produce("t", b"b") == ErrorCode.NONE
    assert holders(cluster) == {after}
    assert not [name for name in cluster.nodes[before].disk.list_directory("") if name.startswith("t-0")]


@MODES
def test_a_partition_gets_more_replicas_and_survives_then_what_it_did_not_before(cluster, mode):
    cluster.create("t", replication_factor=1, replication_mode=mode)
    cluster.pass_time(1000)
    assert cluster.produce("t", b"a") == ErrorCode.NONE
    first = replicas_of(cluster)[0]
    others = [broker for broker in (1, 2, 3) if broker != first]
    assert reassign(cluster, first, *others) == ErrorCode.NONE
    cluster.pass_time(8000)
    assert replicas_of(cluster) == (first, *others)
    assert under_way(cluster) == []
    cluster.nodes[first].lose_power()
    cluster.pass_time(8000)
    assert cluster.produce("t", b"b") == ErrorCode.NONE
    assert cluster.read("t") == [b"a", b"b"]


@MODES
def test_a_partition_gets_fewer_replicas(cluster, mode):
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(2000)
    assert cluster.produce("t", b"a") == ErrorCode.NONE
    kept = replicas_of(cluster)[1]
    assert reassign(cluster, kept) == ErrorCode.NONE
    cluster.pass_time(8000)
    assert holders(cluster) == {kept} == set(replicas_of(cluster))
    assert cluster.produce("t", b"b") == ErrorCode.NONE
    assert cluster.read("t") == [b"a", b"b"]


@MODES
def test_a_reassignment_to_a_broker_that_is_not_there_waits_and_can_be_cancelled(cluster, mode):
    cluster.create("t", replication_factor=1, replication_mode=mode)
    cluster.pass_time(1000)
    assert cluster.produce("t", b"a") == ErrorCode.NONE
    (before,) = replicas_of(cluster)
    absent = before % 3 + 1
    cluster.nodes[absent].lose_power()
    cluster.pass_time(5000)
    assert reassign(cluster, cancel=True) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert reassign(cluster, absent) == ErrorCode.NONE
    cluster.pass_time(5000)
    assert under_way(cluster) == [([absent], [before])]
    assert reassign(cluster, cancel=True) == ErrorCode.NONE
    cluster.pass_time(5000)
    assert under_way(cluster) == []
    assert replicas_of(cluster) == (before,)
    assert cluster.produce("t", b"b") == ErrorCode.NONE


@MODES
def test_a_partition_goes_and_comes_back(cluster, mode):
    cluster.create("t", replication_factor=1, replication_mode=mode)
    cluster.pass_time(1000)
    assert cluster.produce("t", b"a") == ErrorCode.NONE
    (before,) = replicas_of(cluster)
    for target in (before % 3 + 1, before):
        assert reassign(cluster, target) == ErrorCode.NONE
        cluster.pass_time(5000)
        assert replicas_of(cluster) == (target,)
    assert cluster.produce("t", b"b") == ErrorCode.NONE
    for node in cluster.nodes.values():
        node.lose_power()
    for node in cluster.nodes.values():
        node.start()
    cluster.pass_time(15_000)
    assert cluster.read("t") == [b"a", b"b"]


@MODES
def test_a_partition_goes_from_a_broker_that_was_stopped_before_and_comes_back_whole(cluster, mode, caplog):
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(2000)
    assert cluster.produce("t", b"a") == ErrorCode.NONE
    cluster.pass_time(1000)
    *kept, gone = replicas_of(cluster)
    node = cluster.nodes[gone]
    node.broker.close()
    node.stop_timers()
    cluster.pass_time(1000)
    node.start()
    cluster.pass_time(10_000)
    for wanted in (kept, [*kept, gone]):
        assert reassign(cluster, *wanted) == ErrorCode.NONE
        cluster.pass_time(10_000)
    assert holders(cluster) == {1, 2, 3}
    assert node.broker.partitions[T].log.damage == []
    assert "damaged" not in caplog.text


def names(cluster: Cluster, broker: int) -> tuple[str, str]:
    """What a broker's replica is called there, and by the controller."""
    node = cluster.nodes[broker]
    image = node.broker.image.topics["t"].partitions[0]
    return node.broker.partitions[T].shell.core.id.directory, image.replica_on(broker).directory


@MODES
def test_a_partition_comes_back_to_a_broker_that_was_down_when_it_was_moved_away(cluster, mode):
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(2000)
    assert cluster.produce("t", b"a") == ErrorCode.NONE
    cluster.pass_time(1000)
    *kept, gone = replicas_of(cluster)
    cluster.nodes[gone].lose_power()
    cluster.pass_time(5000)
    assert reassign(cluster, *kept) == ErrorCode.NONE
    cluster.pass_time(8000)
    assert replicas_of(cluster) == tuple(kept)
    cluster.nodes[gone].start()
    cluster.pass_time(10_000)
    assert reassign(cluster, *kept, gone) == ErrorCode.NONE
    cluster.pass_time(10_000)
    assert under_way(cluster) == []
    assert holders(cluster) == {1, 2, 3}
    assert len(set(names(cluster, gone))) == 1
    assert cluster.read("t") == [b"a"]


@MODES
def test_a_partition_that_was_moved_away_and_back_while_a_broker_heard_nothing(cluster, mode, monkeypatch):
    """It hears of that in one snapshot, and has had the replica all the time."""
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 10)
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(2000)
    cluster.cut_off.add(BrokerId(3))
    cluster.pass_time(10_000)
    for target in ([1, 2], [1, 2, 3]):
        assert reassign(cluster, *target) == ErrorCode.NONE
        cluster.pass_time(8000)
    for number in range(30):
        assert cluster.create(f"many-{number}", replication_factor=2) == ErrorCode.NONE
    cluster.pass_time(2000)
    assert under_way(cluster) == [([3], [])]
    cluster.cut_off.clear()
    cluster.pass_time(20_000)
    here, known = names(cluster, 3)
    assert here == known
    assert under_way(cluster) == []


class DiskWithABadDirectory(SimulatedDisk):
    """One of its directories cannot be looked into, until that is mended."""

    bad = ""

    def read_file(self, path: str) -> bytes | None:
        if self.bad and path.startswith(f"{self.bad}/"):
            raise DiskFault(f"cannot read {path}")
        return super().read_file(path)


@MODES
def test_a_replica_that_begins_anew_when_it_is_opened_late_counts_under_its_new_name(cluster, mode):
    *_, last = cluster.nodes.values()
    last.lose_power()
    last.disk.__class__ = DiskWithABadDirectory
    last.start()
    cluster.pass_time(10_000)
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(2000)
    assert cluster.produce("t", b"a") == ErrorCode.NONE
    cluster.pass_time(1000)
    last.lose_power()
    last.disk.bad = "t-0"
    last.start()
    cluster.pass_time(10_000)
    assert T in last.broker.placement.closed
    last.disk.remove_tree("t-0")
    last.disk.bad = ""
    cluster.pass_time(70_000)
    here, known = names(cluster, last.id)
    assert here == known
    cluster.nodes[1].lose_power()  # so the one that began anew is needed
    cluster.pass_time(15_000)
    assert cluster.produce("t", b"b") == ErrorCode.NONE
    assert cluster.read("t") == [b"a", b"b"]


def test_a_replica_that_is_opened_late_is_told_who_leads(cluster):
    *_, last = cluster.nodes.values()
    cluster.create("t", replication_mode="isr")
    cluster.pass_time(2000)
    last.lose_power()
    last.disk.__class__ = DiskWithABadDirectory
    last.disk.bad = "t-0"
    last.start()
    cluster.pass_time(10_000)
    assert T in last.broker.placement.closed
    last.disk.bad = ""
    cluster.pass_time(70_000)
    image = last.broker.image.topics["t"].partitions[0]
    assert [each.broker for each in image.in_sync] == [1, 2, 3]


def test_the_groups_of_a_partition_move_with_it(cluster):
    for node in cluster.nodes.values():
        node.broker._growth.close()  # or else it would have three replicas again
    name = cluster.nodes[1].broker.groups.partition_of("readers")
    topic = cluster.nodes[1].broker.image.topics[name.topic]
    (kept, *_) = topic.partitions[name.partition].replicas
    wanted = ReassignablePartition(partition_index=name.partition, replicas=[kept])
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=name.topic, partitions=[wanted])])
    assert cluster.nodes[1].tell(request, 0).responses[0].partitions[0].error_code == ErrorCode.NONE
    cluster.pass_time(8000)
    assert cluster.nodes[kept].broker.groups.find("readers").is_loaded
    assert [node.id for node in cluster.nodes.values() if name in node.broker.partitions] == [kept]
