from __future__ import annotations

import pytest

from zurau.api.kafka import metadata
from zurau.broker import auto_create
from zurau.broker.caller import ANONYMOUS, Caller
from zurau.ids import TopicId
from zurau.machines.controller.commands import CreateTopic
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic

A_TOPIC_ID = TopicId(bytes(range(16)))
NOT_ASKED_FOR = -2147483648


@pytest.fixture
def broker(broker, settle):
    async def create():
        await broker.controller.submit(CreateTopic("orders", A_TOPIC_ID, partition_count=2))

    settle(create())
    return broker


@pytest.fixture
def get(ask, broker):
    def run(*names, version=13, **rest):
        wanted = [MetadataRequestTopic(name=name) for name in names]
        return ask(metadata, MetadataRequest(topics=wanted, **rest), version, broker)

    return run


@pytest.mark.parametrize("version", range(14))
def test_a_topic_is_listed_with_leaders_in_every_version(get, version):
    (topic,) = get("orders", version=version).topics
    assert (topic.error_code, topic.name) == (0, "orders")
    assert [(partition.partition_index, partition.leader_id) for partition in topic.partitions] == [(0, 1), (1, 1)]
    assert topic.partitions[0].replica_nodes == topic.partitions[0].isr_nodes == [1]


def test_the_broker_is_found_where_the_client_dialled_it(get, broker):
    response = get()
    assert [(node.node_id, node.host, node.port) for node in response.brokers] == [(1, "broker.example", 9092)]
    assert (response.cluster_id, response.controller_id) == (broker.cluster_id, 1)


def test_the_leader_epoch_is_the_partitions_own(get, broker):
    (topic,) = get("orders", version=7).topics
    assert topic.partitions[0].leader_epoch == broker.partition("orders", 0).leader_epoch


@pytest.mark.parametrize(("version", "topics"), [(0, []), (1, None), (13, None)])
def test_all_topics_are_asked_for_with_nothing(ask, broker, version, topics):
    response = ask(metadata, MetadataRequest(topics=topics), version, broker)
    assert {topic.name for topic in response.topics} == {"orders", "__consumer_offsets"}


def test_from_version_1_on_an_empty_list_asks_for_no_topics(get):
    assert get(version=1).topics == []


def test_the_brokers_own_topic_is_marked_as_internal(get):
    (topic,) = get("__consumer_offsets", version=1).topics
    assert topic.is_internal


def test_a_topic_is_found_by_its_id(ask, broker):
    wanted = [MetadataRequestTopic(name=None, topic_id=A_TOPIC_ID)]
    (topic,) = ask(metadata, MetadataRequest(topics=wanted), 12, broker).topics
    assert (topic.name, topic.topic_id, len(topic.partitions)) == ("orders", A_TOPIC_ID, 2)


def test_an_id_that_nobody_has_is_refused_without_a_name(ask, broker):
    wanted = [MetadataRequestTopic(name=None, topic_id=b"x" * 16)]
    (topic,) = ask(metadata, MetadataRequest(topics=wanted), 12, broker).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, b"x" * 16)


def test_before_version_12_a_topic_needs_a_name(ask, broker):
    wanted = [MetadataRequestTopic(name=None, topic_id=A_TOPIC_ID)]
    (topic,) = ask(metadata, MetadataRequest(topics=wanted), 10, broker).topics
    assert (topic.error_code, topic.name) == (ErrorCode.INVALID_REQUEST, "")


def test_a_missing_topic_is_created_and_listed_with_its_leader(get, broker):
    (topic,) = get("new").topics
    assert topic.error_code == 0
    assert [partition.leader_id for partition in topic.partitions] == [1]
    assert broker.partition("new", 0).log.end_offset == 0


def test_a_client_can_forbid_creation(get, broker):
    (topic,) = get("new", allow_auto_topic_creation=False).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "new" not in broker.image.topics


def test_a_broker_can_forbid_creation(ask, make_broker):
    broker = make_broker(auto_create_topics_enable=False)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="new")])
    (topic,) = ask(metadata, request, 4, broker).topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("allow", [True, False])
def test_a_name_that_no_topic_can_have_is_said_to_be_one(get, allow):
    (topic,) = get("not a name", allow_auto_topic_creation=allow).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_name_that_collides_with_a_topic_is_refused(get):
    get("a.b")
    (topic,) = get("a_b").topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_metadata_log_is_never_created_by_asking_for_it(get, broker):
    (topic,) = get("__cluster_metadata").topics
    assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_is_named_twice_is_answered_once(get):
    assert [topic.name for topic in get("orders", "new", "orders").topics] == ["orders", "new"]


def test_a_partition_that_cannot_be_served_has_no_leader(get, broker):
    del broker.partitions["orders", 1]
    (topic,) = get("orders").topics
    unserved = topic.partitions[1]
    assert (unserved.error_code, unserved.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert (unserved.isr_nodes, unserved.offline_replicas) == ([], [1])


def test_rights_are_told_only_when_asked_for(get):
    unasked = get("orders", version=8)
    assert unasked.cluster_authorized_operations == NOT_ASKED_FOR
    assert unasked.topics[0].topic_authorized_operations == NOT_ASKED_FOR
    rights = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
    asked = get("orders", version=8, **rights)
    assert asked.cluster_authorized_operations == 0b1_1111_1010_0000
    assert asked.topics[0].topic_authorized_operations == 0b1101_1111_1000


def test_so_many_missing_topics_are_created_and_the_others_when_asked_for_again(get, broker, monkeypatch):
    monkeypatch.setattr(auto_create, "AUTO_CREATED_MAX", 2)
    first = [topic.error_code for topic in get("a", "b", "c").topics]
    assert first == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE]
    assert [topic.error_code for topic in get("a", "b", "c").topics] == [ErrorCode.NONE] * 3


def test_a_topic_that_somebody_else_is_just_creating_is_to_be_asked_for_again(broker, settle):
    broker.controller.submit(CreateTopic("new", TopicId(bytes(16))))  # decided, and not committed yet
    refusals = settle(auto_create.create_missing_topics(["new"], Caller(ANONYMOUS, "127.0.0.1", "PLAINTEXT"), broker))
    assert refusals["new"].code is ErrorCode.LEADER_NOT_AVAILABLE
