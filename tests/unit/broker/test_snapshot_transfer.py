"""Metadata that goes from broker to broker as a snapshot, and logs that begin where their leader's does."""

from __future__ import annotations

import pytest
from three_brokers import Cluster

from zurau.broker import metadata_snapshots, snapshot_transfer
from zurau.ids import BrokerId, ReplicaId, TopicPartition
from zurau.pending import start
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.pass_time(10_000)
    return cluster


def create_many(cluster: Cluster, count: int, at: int) -> None:
    for number in range(count):
        assert cluster.create(f"many-{number}", replication_factor=2, at=at) == ErrorCode.NONE


@pytest.mark.parametrize("piece_bytes", [97, 1 << 20])
def test_a_broker_that_was_away_for_long_is_sent_a_snapshot_of_the_metadata(cluster, monkeypatch, caplog, piece_bytes):
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 10)
    monkeypatch.setattr(snapshot_transfer, "PIECE_BYTES", piece_bytes)
    cluster.create("gone", replication_factor=3)
    cluster.pass_time(2000)
    cluster.nodes[3].lose_power()
    cluster.pass_time(5000)
    create_many(cluster, 30, at=1)
    cluster.nodes[1].tell(DeleteTopicsRequest(topic_names=["gone"], timeout_ms=1000), 5)
    cluster.pass_time(2000)
    leading = next(n for n in cluster.nodes.values() if n.broker is not None and n.broker.metadata.partition.leads)
    assert leading.broker.metadata.partition.log.start_offset > 0
    cluster.nodes[3].start()
    cluster.pass_time(15_000)
    returned = cluster.nodes[3].broker
    assert "begins anew with a snapshot" in caplog.text
    assert returned.image.topics == leading.broker.image.topics
    assert returned.metadata.partition.log.start_offset > 0
    assert set(returned.metadata.partition.shell.core.voters) == set(
        leading.broker.metadata.partition.shell.core.voters
    )
    assert not returned.image.brokers[BrokerId(3)].is_fenced
    assert TopicPartition("gone", 0) not in returned.partitions
    assert cluster.create("after", at=3) == ErrorCode.NONE


def test_a_broker_with_an_empty_disk_begins_with_a_snapshot_and_is_a_voter_again(cluster, monkeypatch):
    monkeypatch.setattr(metadata_snapshots, "RECORDS_MIN", 10)
    create_many(cluster, 20, at=1)
    lost = cluster.nodes[3]
    lost.lose_disk()
    cluster.pass_time(5000)
    lost.start()
    cluster.pass_time(20_000)
    assert (lost.opened.is_done, lost.opened.error) == (True, None)
    assert len(lost.broker.image.topics) == 21
    voters = lost.broker.metadata.partition.shell.core.voters
    assert ReplicaId(BrokerId(3), lost.broker.identity.directory_name) in voters


def test_a_new_replica_begins_where_the_leaders_log_does(cluster):
    cluster.create("t")
    cluster.pass_time(2000)
    assert [cluster.produce("t", value) for value in (b"a", b"b", b"c")] == [ErrorCode.NONE] * 3
    cluster.pass_time(1000)
    name = TopicPartition("t", 0)
    lost = next(node for node in cluster.nodes.values() if node is not cluster.leader_of("t") and node.id != 1)
    lost.lose_disk()
    start(cluster.leader_of("t").broker.partitions[name].move_start(2))
    cluster.pass_time(5000)
    lost.start()
    cluster.pass_time(20_000)
    stored = lost.broker.partitions[name].log
    # Behind the records: its old name votes no more, and its new one does.
    assert (stored.start_offset, stored.end_offset) == (2, 5)
    assert (
        lost.broker.partitions[name].shell.core.id in cluster.leader_of("t").broker.partitions[name].shell.core.voters
    )
