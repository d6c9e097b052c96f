"""Leaders go back to preferred replicas, away from drained brokers, and away from a broker that stops."""

from __future__ import annotations

import pytest
from three_brokers import Cluster

from zurau.broker.leadership import leadership_of
from zurau.ids import BrokerId, TopicPartition
from zurau.machines.controller.commands import AlterConfigs, ConfigEdit, ConfigOperation, ResourceType
from zurau.pending import start
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

MODES = pytest.mark.parametrize("mode", ["quorum", "isr"])


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.pass_time(10_000)
    return cluster


def preferred_of(cluster: Cluster, topic: str) -> int:
    image = next(node.broker.image for node in cluster.nodes.values() if node.broker is not None)
    return image.topics[topic].partitions[0].replicas[0]


def told_leaders(cluster: Cluster, topic: str) -> set[int]:
    """Whom clients are sent to, by whichever broker they ask."""
    told = set()
    for node in cluster.nodes.values():
        image = node.broker.image.topics[topic]
        told.add(leadership_of(image, image.partitions[0], node.broker).leader_id)
    return told


def drain(cluster: Cluster, broker: int, how: str = "leaders") -> None:
    node = next(iter(cluster.nodes.values()))
    edit = ConfigEdit("zurau.drain", ConfigOperation.SET, how)
    node.wait(node.broker.controller.submit(AlterConfigs(ResourceType.BROKER, str(broker), [edit])))


@MODES
def test_leadership_goes_back_to_the_preferred_replica_when_it_is_there_again(cluster, mode):
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(8000)
    preferred = preferred_of(cluster, "t")
    assert cluster.leader_of("t").id == preferred
    cluster.nodes[preferred].lose_power()
    cluster.pass_time(8000)
    assert cluster.leader_of("t").id != preferred
    assert cluster.produce("t", b"a") == ErrorCode.NONE
    cluster.nodes[preferred].start()
    cluster.pass_time(15_000)
    assert cluster.leader_of("t").id == preferred
    assert cluster.read("t") == [b"a"]


@MODES
def test_a_drained_broker_leads_nothing_until_that_is_taken_back(cluster, mode):
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(8000)
    preferred = preferred_of(cluster, "t")
    drain(cluster, preferred)
    cluster.pass_time(8000)
    assert cluster.leader_of("t").id != preferred
    drain(cluster, preferred, "none")
    cluster.pass_time(8000)
    assert cluster.leader_of("t").id == preferred


@MODES
def test_when_all_are_drained_somebody_leads_all_the_same(cluster, mode):
    cluster.create("t", replication_mode=mode)
    for broker in (1, 2, 3):
        drain(cluster, broker)
    cluster.pass_time(8000)
    assert cluster.produce("t", b"a") == ErrorCode.NONE


@MODES
def test_a_broker_that_stops_hands_over_first(cluster, mode):
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(8000)
    leader = cluster.leader_of("t")
    handed_over = start(leader.broker.hand_over())
    leader.wait(handed_over)
    assert not any(partition.leads for partition in leader.broker.partitions.values())
    cluster.pass_time(20)
    assert cluster.leader_of("t").id != leader.id


def test_a_broker_stops_also_when_nobody_is_there_to_take_over(cluster):
    cluster.nodes[2].lose_power()
    cluster.nodes[3].lose_power()
    cluster.pass_time(5000)
    cluster.nodes[1].wait(start(cluster.nodes[1].broker.hand_over()))


@MODES
def test_the_preferred_replica_can_be_elected(cluster, mode):
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(8000)
    preferred = preferred_of(cluster, "t")
    drain(cluster, preferred)
    cluster.pass_time(8000)
    drain(cluster, preferred, "none")
    asked = next(node for node in cluster.nodes.values() if node.id not in (preferred, cluster.leader_of("t").id))
    wanted = [TopicPartitions(topic="t", partitions=[0])]
    request = ElectLeadersRequest(election_type=0, topic_partitions=wanted, timeout_ms=5000)
    answer = asked.tell(request, 2)
    (result,) = answer.replica_election_results
    assert result.partition_result[0].error_code == ErrorCode.NONE, result.partition_result[0].error_message
    cluster.pass_time(100)
    assert cluster.leader_of("t").id == preferred


def test_a_broker_without_a_replica_knows_who_leads(cluster):
    cluster.create("t", replication_factor=1)
    cluster.pass_time(2000)
    leader = preferred_of(cluster, "t")
    assert told_leaders(cluster, "t") == {leader}


def test_a_broker_that_starts_is_told_who_leads(cluster):
    cluster.create("t", replication_factor=1)
    cluster.pass_time(2000)
    leader = preferred_of(cluster, "t")
    other = next(node for node in cluster.nodes.values() if node.id != leader)
    other.lose_power()
    cluster.pass_time(1000)
    other.start()
    cluster.connect_all()
    cluster.pass_time(10_000)
    assert told_leaders(cluster, "t") == {leader}
    assert TopicPartition("t", 0) not in other.broker.partitions
    assert other.broker.known_leaders.find(("nowhere", 0)) is None
    assert other.broker.image.brokers[BrokerId(leader)].is_active
