"""Leaders go back to preferred replicas, away from drained brokers, and away from a broker that stops."""

from __future__ import annotations

import pytest
from three_brokers import Cluster

from zurau.api.kafka.describe_quorum import METADATA_LOG
from zurau.broker.leadership import leadership_of
from zurau.broker.room import YIELD_MS
from zurau.errors import ProtocolViolation
from zurau.ids import BrokerId, TopicPartition
from zurau.machines.controller.commands import AlterConfigs, ConfigEdit, ConfigOperation, ResourceType
from zurau.pending import start
from zurau.settings import MIB
from zurau.simulation.client import SimulatedClient
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.add_raft_voter import AddRaftVoterRequest
from zurau.wire.kafka.messages.describe_quorum import DescribeQuorumRequest
from zurau.wire.kafka.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from zurau.wire.kafka.messages.remove_raft_voter import RemoveRaftVoterRequest
from zurau.wire.kafka.messages.unregister_broker import UnregisterBrokerRequest
from zurau.wire.peer.frames import Kind, encode_frame

LOOK_MS = 300_000
LARGE = bytes(2 * MIB)
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


def produce_to(node, topic: str):
    client = SimulatedClient(node)
    data = [PartitionProduceData(index=0, records=client.batch(b"a"))]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)])
    return node.tell(request, 11)


@MODES
def test_who_asks_another_broker_than_the_leader_is_told_who_leads(cluster, mode):
    cluster.create("t", replication_factor=1, replication_mode=mode)
    cluster.pass_time(2000)
    leader = cluster.leader_of("t")
    other = next(node for node in cluster.nodes.values() if node.id != leader.id)
    answer = produce_to(other, "t")
    (told,) = answer.responses[0].partition_responses
    assert (told.error_code, told.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, leader.id)
    assert told.current_leader.leader_epoch == leader.broker.partitions[TopicPartition("t", 0)].leader_epoch


@MODES
def test_a_dead_broker_is_shown_as_offline_and_not_in_sync(cluster, mode):
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(2000)
    dead = next(node for node in cluster.nodes.values() if node.id != cluster.leader_of("t").id)
    dead.lose_power()
    cluster.pass_time(8000)
    leader = cluster.leader_of("t")
    image = leader.broker.image.topics["t"]
    shown = leadership_of(image, image.partitions[0], leader.broker)
    assert shown.offline == [dead.id]
    assert dead.id not in shown.in_sync
    assert len(shown.in_sync) == 2


def test_the_metadata_quorum_is_described_by_every_broker(cluster):
    leaders, voters = set(), set()
    for node in cluster.nodes.values():
        (topic,) = node.tell(DescribeQuorumRequest(topics=[METADATA_LOG]), 2).topics
        (described,) = topic.partitions
        leaders.add(described.leader_id)
        voters.add(tuple(sorted(each.replica_id for each in described.current_voters)))
        assert all(each.log_end_offset > 0 for each in described.current_voters)
    assert voters == {(1, 2, 3)}
    assert len(leaders) == 1


def test_a_vote_is_taken_away_and_given_back(cluster):
    def voters() -> int:
        return len(cluster.nodes[1].broker.metadata.partition.shell.core.membership.voters)

    who = {"cluster_id": None, "voter_id": 3, "voter_directory_id": bytes([3] * 16)}
    again = AddRaftVoterRequest(timeout_ms=1000, listeners=[], **who)
    assert cluster.nodes[2].tell(again, 0).error_code == ErrorCode.DUPLICATE_VOTER
    assert cluster.nodes[2].tell(RemoveRaftVoterRequest(**who), 0).error_code == ErrorCode.NONE
    cluster.pass_time(5000)
    assert voters() == 1, "two survive no more failures than one, and stop at more"
    assert cluster.nodes[2].tell(again, 0).error_code == ErrorCode.NONE
    cluster.pass_time(5000)
    assert voters() == 3
    unknown = RemoveRaftVoterRequest(cluster_id=None, voter_id=9, voter_directory_id=bytes(16))
    assert cluster.nodes[2].tell(unknown, 0).error_code == ErrorCode.VOTER_NOT_FOUND


def test_a_broker_is_unregistered_when_it_holds_nothing(cluster):
    assert cluster.nodes[1].tell(UnregisterBrokerRequest(broker_id=3), 0).error_code == ErrorCode.INVALID_REQUEST
    unknown = cluster.nodes[1].tell(UnregisterBrokerRequest(broker_id=9), 0)
    assert unknown.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


# Away from a disk without room


def fill(node, left: int = 0) -> None:
    node.disk.capacity_bytes = node.disk.used_bytes + left


@pytest.fixture
def nearly_full(cluster, mode):
    """The leader of a topic: its disk has room for what the controller decides, and not for the next record."""
    cluster.create("t", replication_mode=mode, max_message_bytes=str(4 * MIB))
    cluster.pass_time(2000)
    leader = cluster.leader_of("t")
    fill(leader, 3 * MIB // 2)
    assert cluster.produce("t", LARGE) == ErrorCode.KAFKA_STORAGE_ERROR
    return leader


@MODES
def test_who_has_no_room_lets_another_lead(cluster, nearly_full):
    cluster.pass_time(1000)
    assert cluster.leader_of("t") is not nearly_full
    assert cluster.produce("t", LARGE) == ErrorCode.NONE
    assert cluster.read("t") == [LARGE]


@MODES
def test_who_has_room_again_is_caught_up_and_leads_again(cluster, nearly_full):
    cluster.pass_time(1000)
    cluster.produce("t", LARGE)
    nearly_full.disk.capacity_bytes = 1 << 40
    cluster.pass_time(YIELD_MS + LOOK_MS)
    assert cluster.leader_of("t") is nearly_full
    assert cluster.produce("t", b"again") == ErrorCode.NONE
    assert cluster.read("t") == [LARGE, b"again"]


def test_a_question_for_room_that_cannot_be_read_is_refused(cluster):
    frame = b"".join(encode_frame(Kind.ROOM_ASKED, [b"?"]))[4:]
    with pytest.raises(ProtocolViolation, match="broker 2"):
        cluster.nodes[BrokerId(1)].broker.received(BrokerId(2), memoryview(frame))


@MODES
def test_when_nobody_has_room_what_there_is_can_be_read(cluster, mode):
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(2000)
    cluster.produce("t", b"one")
    for node in cluster.nodes.values():
        fill(node)
    for _ in range(5):
        assert cluster.produce("t", b"refused") == ErrorCode.KAFKA_STORAGE_ERROR
        cluster.pass_time(3000)
        assert cluster.read("t") == [b"one"]


def test_a_controller_without_room_lets_another_decide(cluster):
    full = next(node for node in cluster.nodes.values() if node.broker.metadata.partition.is_established)
    fill(full)
    other = next(node for node in cluster.nodes.values() if node is not full)
    cluster.create("refused", at=other.id)
    cluster.pass_time(3000)
    assert cluster.create("t", 1, at=other.id) == ErrorCode.NONE
    assert not full.broker.metadata.partition.leads
