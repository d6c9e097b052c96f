"""Administration with confluent-kafka's AdminClient: what is seen of groups, offsets, configs and the cluster."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from driver import CLIENTS

PATIENCE_S = 20


@pytest.fixture
def admin(bootstrap):
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


@pytest.fixture
def group(bootstrap, topic):
    """A group that has committed offset 7, and is empty again."""
    name = f"group-of-{topic}"
    CLIENTS[0].run("produce", bootstrap, topic=topic, count=10)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    consumer.commit(offsets=[TopicPartition(topic, 0, 7, metadata="a note")], asynchronous=False)
    consumer.close()
    return name


def only(futures):
    (future,) = futures.values() if isinstance(futures, dict) else futures
    return future.result(timeout=PATIENCE_S)


def test_the_cluster_tells_its_name_and_its_brokers(admin, bootstrap, brokers):
    described = admin.describe_cluster(request_timeout=PATIENCE_S).result(timeout=PATIENCE_S)
    assert described.cluster_id
    assert bootstrap in [f"{node.host}:{node.port}" for node in described.nodes]
    assert len(described.nodes) == brokers
    assert described.controller.id in [node.id for node in described.nodes]


def test_a_topic_is_described_with_its_leader_and_id(admin, topic):
    from confluent_kafka import TopicCollection

    # Who was asked may not have heard yet who leads a topic that is this new.
    deadline_s = time.monotonic() + PATIENCE_S
    while (described := only(admin.describe_topics(TopicCollection([topic])))).partitions[0].leader is None:
        assert time.monotonic() < deadline_s, "nobody leads the topic"
    assert described.name == topic
    assert len(str(described.topic_id)) == 22
    (partition,) = described.partitions
    assert partition.leader.id in [replica.id for replica in partition.replicas]


def test_a_dry_run_makes_no_topic(admin, topic):
    only(admin.create_topics([NewTopic(topic + "-not", 1, 1)], validate_only=True))
    assert topic + "-not" not in admin.list_topics(timeout=PATIENCE_S).topics


@pytest.mark.parametrize(
    ("new_topic", "code"),
    [
        (NewTopic("not/a/name", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("no-partitions", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("too-many-replicas", 1, 4), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("odd-config", 1, 1, config={"retention.ms": "soon"}), KafkaError.INVALID_CONFIG),
        (NewTopic("unknown-config", 1, 1, config={"no.such.thing": "1"}), KafkaError.INVALID_CONFIG),
    ],
    ids=lambda value: value.topic if isinstance(value, NewTopic) else "",
)
def test_a_topic_that_cannot_be_is_refused_with_the_reason(admin, new_topic, code):
    with pytest.raises(KafkaException) as refused:
        only(admin.create_topics([new_topic]))
    assert refused.value.args[0].code() == code
    assert refused.value.args[0].str()


def test_configs_are_changed_one_at_a_time(admin, make_topic):
    topic = make_topic(**{"retention.ms": "1000", "max.message.bytes": "2000"})
    change = ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)
    only(admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])]))
    configs = only(admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
    assert configs["retention.ms"].value == str(7 * 24 * 3600 * 1000)
    assert configs["retention.ms"].is_default
    assert configs["max.message.bytes"].value == "2000"
    assert not configs["max.message.bytes"].is_default


def test_a_broker_tells_its_settings(admin):
    broker_id = admin.describe_cluster(request_timeout=PATIENCE_S).result(timeout=PATIENCE_S).nodes[0].id
    configs = only(admin.describe_configs([ConfigResource(ResourceType.BROKER, str(broker_id))]))
    assert configs["num.partitions"].value == "1"


def test_records_before_an_offset_are_deleted(admin, bootstrap, topic):
    CLIENTS[0].run("produce", bootstrap, topic=topic, count=10)
    deleted = only(admin.delete_records([TopicPartition(topic, 0, 4)]))
    assert deleted.low_watermark == 4
    found = only(admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.earliest()}))
    assert found.offset == 4


def test_the_record_with_the_latest_time_is_found(admin, bootstrap, topic):
    CLIENTS[0].run("produce", bootstrap, topic=topic, count=10, timestamp_ms=1_700_000_000_000)
    CLIENTS[0].run("produce", bootstrap, topic=topic, count=10, timestamp_ms=1_600_000_000_000)
    found = only(admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.max_timestamp()}))
    assert (found.offset, found.timestamp) == (9, 1_700_000_000_009)


def test_groups_are_listed_and_described(admin, group):
    listed = admin.list_consumer_groups(request_timeout=PATIENCE_S).result(timeout=PATIENCE_S)
    assert group in [found.group_id for found in listed.valid]
    assert not listed.errors
    described = only(admin.describe_consumer_groups([group]))
    assert (described.state, described.members) == (ConsumerGroupState.EMPTY, [])


def test_members_of_a_group_are_described(admin, bootstrap, topic):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"live-{topic}", "client.id": "the-reader"})
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    described = only(admin.describe_consumer_groups([f"live-{topic}"]))
    consumer.close()
    assert described.state == ConsumerGroupState.STABLE
    assert [member.client_id for member in described.members] == ["the-reader"]
    assigned = described.members[0].assignment.topic_partitions
    assert [(one.topic, one.partition) for one in assigned] == [(topic, 0)]


def test_committed_offsets_come_back_with_their_note(admin, group, topic):
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
    (found,) = only(admin.list_consumer_group_offsets([asked])).topic_partitions
    assert (found.offset, found.metadata) == (7, "a note")


def test_offsets_of_an_empty_group_can_be_set(admin, group, topic):
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 3)])
    only(admin.alter_consumer_group_offsets([wanted]))
    (found,) = only(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])).topic_partitions
    assert found.offset == 3


def test_a_deleted_group_has_no_offsets(admin, group, topic):
    only(admin.delete_consumer_groups([group]))
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
    (found,) = only(admin.list_consumer_group_offsets([asked])).topic_partitions
    assert found.offset < 0


def test_a_group_that_is_unknown_cannot_be_deleted(admin, topic):
    with pytest.raises(KafkaException) as refused:
        only(admin.delete_consumer_groups([f"nobody-knows-{topic}"]))
    assert refused.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND
