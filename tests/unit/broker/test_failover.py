"""How soon clients find the next leader, on three whole brokers in one world, by its clock."""

from __future__ import annotations

import msgspec
import pytest
from three_brokers import Cluster

from zurau.broker.elections import DECIDED_WITHIN_MS
from zurau.errors import CorruptData
from zurau.ids import BrokerId, TopicPartition
from zurau.machines.controller.commands import AllocateProducerIds
from zurau.ports import Handshake
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from zurau.wire.kafka.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from zurau.wire.kafka.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from zurau.wire.peer.frames import Kind, encode_frame

T = TopicPartition("t", 0)
METADATA = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
TOPIC = 2
METADATA_FILE = "__cluster_metadata-0/00000000000000000000.log"


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.connect_all()
    cluster.pass_time(10_000)
    return cluster


def controller(cluster):
    return next(node for node in cluster.nodes.values() if node.broker and node.broker.metadata.runtime.is_loaded)


def kill(cluster, *victims):
    """As kill -9: the others see its connections end."""
    for victim in victims:
        victim.lose_power()
    for node in cluster.nodes.values():
        for victim in victims:
            if node.broker is not None:
                node.broker.lost(victim.id)


def survivor(cluster):
    return next(node for node in cluster.nodes.values() if node.broker is not None)


def hide_commits_from(node):
    """It stores what the metadata log gets, and does not hear how much of it is committed."""
    partition = node.broker.metadata.partition
    follow, partition.on_commit = partition.on_commit, lambda: None
    return follow


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_a_new_partition_is_led_by_its_preferred_replica_at_once(cluster, mode):
    for name in ("t", "u", "v"):
        cluster.create(name, replication_mode=mode)
        cluster.pass_time(300)
        image = cluster.nodes[BrokerId(1)].broker.image.topics[name].partitions[0]
        assert cluster.leader_of(name).id == image.preferred.broker


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_who_asks_while_a_leader_is_being_elected_is_told_of_the_next_one(cluster, mode):
    cluster.create("t", replication_mode=mode)
    cluster.pass_time(2000)
    dead = cluster.leader_of("t")
    kill(cluster, dead)
    for node in (node for node in cluster.nodes.values() if node.broker is not None):
        (partition,) = node.tell(METADATA, 12).topics[0].partitions
        assert partition.error_code == ErrorCode.NONE
        assert partition.leader_id != dead.id
    cluster.pass_time(500)
    assert cluster.leader_of("t").id == partition.leader_id


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_one_that_leads_and_is_the_controller_is_replaced_within_a_second(cluster, mode):
    dead = controller(cluster)
    names = [f"t{number}" for number in range(6)]
    for name in names:
        cluster.create(name, replication_mode=mode)
    cluster.pass_time(2000)
    led = [name for name in names if cluster.leader_of(name) is dead]
    assert led
    kill(cluster, dead)
    cluster.pass_time(1000)
    assert all(cluster.leader_of(name) is not dead for name in led)


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_who_asks_when_the_controller_died_is_told_the_next_leader_too(cluster, mode):
    dead = controller(cluster)
    names = [f"t{number}" for number in range(6)]
    for name in names:
        cluster.create(name, replication_mode=mode)
    cluster.pass_time(2000)
    led = next(name for name in names if cluster.leader_of(name) is dead)
    kill(cluster, dead)
    cluster.pass_time(1)
    topics = [MetadataRequestTopic(name=led)]
    asked = survivor(cluster).ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)
    cluster.pass_time(2000)
    assert asked.result().topics[0].partitions[0].leader_id not in (-1, dead.id)


def test_what_stays_without_a_leader_holds_up_an_answer_for_a_moment_only(cluster):
    cluster.create("t")
    cluster.pass_time(2000)
    kill(cluster, *[node for node in cluster.nodes.values() if node is not cluster.leader_of("t")][:1])
    kill(cluster, cluster.leader_of("t"))
    asked = survivor(cluster).ask(METADATA, 12)
    cluster.pass_time(DECIDED_WITHIN_MS - 1)
    assert not asked.is_done
    cluster.pass_time(21)
    assert asked.is_done
    cluster.pass_time(5000)
    assert survivor(cluster).ask(METADATA, 12).is_done


def test_a_topic_that_is_deleted_while_its_leader_is_elected_is_not_waited_for(cluster):
    cluster.create("t")
    cluster.pass_time(2000)
    others = [node for node in cluster.nodes.values() if node is not controller(cluster)]
    node = controller(cluster)
    for other in others:
        node.broker.lost(other.id)  # its connections alone: the topic has a leader that this one does not see
    asked = node.ask(METADATA, 12)
    del node.broker.image.topics_by_id[node.broker.image.topics["t"].topic_id]
    cluster.pass_time(21)
    assert asked.is_done


def test_a_topic_that_is_made_anew_with_fewer_partitions_meanwhile_is_not_mistaken_for_the_old_one(cluster):
    node = controller(cluster)
    node.tell(cluster.wish("t", partitions=2), 5)
    cluster.pass_time(2000)
    for other in cluster.nodes.values():
        if other is not node:
            node.broker.lost(other.id)
    asked = node.ask(METADATA, 12)
    node.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    cluster.pass_time(15)
    node.ask(cluster.wish("t"), 5)
    cluster.pass_time(1000)
    assert len(asked.result().topics[0].partitions) == 1


def test_what_is_asked_while_there_is_no_controller_waits_for_the_next_one(cluster):
    kill(cluster, controller(cluster))
    assert cluster.create("t", replication_factor=2, at=survivor(cluster).id) == ErrorCode.NONE


def test_without_a_majority_who_asks_the_controller_is_refused_in_the_end(cluster):
    kill(cluster, *[node for node in cluster.nodes.values() if node is not controller(cluster)][:1])
    kill(cluster, controller(cluster))
    assert cluster.create("t", replication_factor=1, at=survivor(cluster).id) == ErrorCode.NOT_CONTROLLER


def connect_anew(node, other):
    """The next process of a broker has connected before anybody saw that the one before had died."""
    node.broker.lost(other)
    node.broker.connected(Handshake(other, "cluster", bytes([other] * 16), bytes(16), is_metadata_empty=False))


def test_what_a_process_asked_that_died_is_not_answered_to_the_next_one(cluster):
    node = controller(cluster)
    other = next(each for each in cluster.nodes.values() if each is not node)
    asked = other.broker.controller.submit(AllocateProducerIds(10))
    cluster.pass_time(1)  # it has arrived, and is not committed
    connect_anew(node, other.id)
    cluster.pass_time(1000)
    assert node.broker.image.next_producer_id == 10
    assert not asked.is_done  # the numbers of questions begin anew: it would be the answer to another one


def test_what_a_process_asked_that_died_before_the_controller_was_there_is_not_decided(cluster):
    kill(cluster, controller(cluster))
    alive = [node for node in cluster.nodes.values() if node.broker is not None]

    def loading():
        return [each for each in alive if each.broker.metadata.partition.leads]

    while not loading():
        cluster.pass_time(1)
    (node,) = loading()
    assert not node.broker.metadata.runtime.is_loaded
    (other,) = [each for each in alive if each is not node]
    question = [1, "AllocateProducerIds", msgspec.Raw(msgspec.msgpack.encode(AllocateProducerIds(10)))]
    frame = b"".join(encode_frame(Kind.COMMAND, [msgspec.msgpack.encode(question)]))
    node.broker.received(other.id, memoryview(frame)[4:])
    connect_anew(node, other.id)
    cluster.pass_time(2000)
    assert node.broker.metadata.runtime.is_loaded
    assert node.broker.image.next_producer_id == 0


def test_clients_are_always_told_of_a_broker_that_takes_what_is_for_the_controller(cluster):
    kill(cluster, controller(cluster))
    node = survivor(cluster)
    assert node.tell(MetadataRequest(topics=[]), 12).controller_id == node.id


def test_a_topic_that_was_made_at_another_broker_is_not_said_to_be_unknown(cluster):
    other = controller(cluster)
    node = next(each for each in cluster.nodes.values() if each is not other)
    follow = hide_commits_from(node)
    made = other.ask(cluster.wish("t"), 5)
    while not made.is_done:
        cluster.pass_time(1)
    asked = node.ask(METADATA, 12)
    node.broker.metadata.partition.on_commit = follow
    follow()
    assert node.wait(asked).topics[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")], response_partition_limit=9), 0),
        (DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=TOPIC, resource_name="t")]), 4),
    ],
)
def test_descriptions_hold_what_another_broker_was_told(cluster, request_, version):
    other = controller(cluster)
    node = next(each for each in cluster.nodes.values() if each is not other)
    made = other.ask(cluster.wish("t"), 5)
    while not made.is_done:
        cluster.pass_time(1)
    answer = node.tell(request_, version)
    assert [each.error_code for each in (answer.topics if version == 0 else answer.results)] == [ErrorCode.NONE]


def test_who_is_elected_controller_and_cannot_read_the_metadata_stops(cluster):
    cluster.create("t")
    first = controller(cluster)
    for node in cluster.nodes.values():
        node.disk.flip_bit(METADATA_FILE, len(node.disk.read_file(METADATA_FILE)) // 2)
    kill(cluster, first)
    cluster.pass_time(5000)
    failures = [failure for node in cluster.nodes.values() for failure in node.failures]
    assert isinstance(failures[0], CorruptData)
    assert "__cluster_metadata-0 is damaged at offset" in str(failures[0])
