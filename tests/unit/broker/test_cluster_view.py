"""What is decided is not yet true: clients see a topic when nothing can take it back any more."""

from __future__ import annotations

import pytest

from zurau.log.settings import LogSettings
from zurau.records.builder import NewRecord, build_batch
from zurau.simulation.broker import SimulatedBroker
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

CREATE = CreateTopicsRequest(
    topics=[CreatableTopic(name="orders", num_partitions=1, replication_factor=1, assignments=[], configs=[])],
    timeout_ms=60_000,
)
LOOK = MetadataRequest(topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=False)


def produce() -> ProduceRequest:
    data = PartitionProduceData(index=0, records=build_batch([NewRecord(None, b"v", timestamp=1)]))
    topic = TopicProduceData(name="orders", partition_data=[data])
    return ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[topic])


@pytest.fixture
def broker() -> SimulatedBroker:
    broker = SimulatedBroker(seed=1, log_settings=LogSettings())
    broker.broker.world.flusher.delay_ms = 500
    return broker


def seen(broker: SimulatedBroker) -> ErrorCode:
    (topic,) = broker.tell(LOOK, 9).topics
    return ErrorCode(topic.error_code)


def test_a_topic_is_seen_when_its_record_is_committed(broker):
    created = broker.ask(CREATE, 5)
    assert seen(broker) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.wait(created)
    assert seen(broker) is ErrorCode.NONE


def test_nothing_can_be_produced_to_a_topic_that_could_still_be_lost(broker):
    broker.ask(CREATE, 5)
    (answer,) = broker.tell(produce(), 9).responses[0].partition_responses
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_whose_record_is_lost_leaves_nothing_behind(broker):
    broker.ask(CREATE, 5)
    broker.lose_power()
    broker.start()
    assert seen(broker) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not [name for name in broker.disk.list_directory("") if name.startswith("orders")]


def test_whoever_created_a_topic_sees_it(broker):
    (created,) = broker.tell(CREATE, 5).topics
    assert (created.error_code, seen(broker)) == (ErrorCode.NONE, ErrorCode.NONE)


def test_a_second_creation_waits_for_the_first_and_is_refused(broker):
    broker.ask(CREATE, 5)
    second = broker.ask(CREATE, 5)
    assert not second.is_done
    (refused,) = broker.wait(second).topics
    assert refused.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_topic_is_served_until_its_deletion_is_committed(broker):
    broker.tell(CREATE, 5)
    deleted = broker.ask(DeleteTopicsRequest(topic_names=["orders"], timeout_ms=60_000), 5)
    assert seen(broker) is ErrorCode.NONE
    broker.wait(deleted)
    assert seen(broker) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
