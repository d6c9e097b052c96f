from __future__ import annotations

import pytest

from zurau.broker.settings import BrokerSettings
from zurau.log.settings import LogSettings
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_producers import DescribeProducersRequest, TopicRequest


@pytest.fixture
def client() -> SimulatedClient:
    client = SimulatedClient(SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1)))
    client.create_topic("t")
    return client


def describe(client: SimulatedClient, topic: str = "t"):
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    return client.broker.tell(request, 0).topics[0].partitions[0]


def test_a_producer_is_described_by_its_last_batch(client):
    now_ms = client.broker.clock.now_ms()
    client.produce("t", client.batch(b"a", b"b", producer_id=7, producer_epoch=3, base_sequence=0))
    (producer,) = describe(client).active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (7, 3, 1)
    assert producer.last_timestamp == now_ms


def test_the_last_time_of_a_producer_is_that_of_its_batch_and_not_the_brokers(client):
    batch = client.batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    written_ms = client.broker.clock.now_ms()
    client.broker.clock.advance(5_000)
    client.produce("t", batch)
    assert [producer.last_timestamp for producer in describe(client).active_producers] == [written_ms]


def test_producers_without_an_id_are_not_remembered(client):
    client.produce("t", client.batch(b"a"))
    assert describe(client).active_producers == []


def test_a_producer_is_remembered_through_a_restart(client):
    client.produce("t", client.batch(b"a", producer_id=7, producer_epoch=0, base_sequence=4))
    client.broker.stop()
    client.broker.start()
    assert [producer.last_sequence for producer in describe(client).active_producers] == [4]


def test_a_producer_that_is_silent_for_a_day_is_forgotten(client):
    client.produce("t", client.batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0))
    client.broker.clock.advance(25 * 3_600_000)
    assert describe(client).active_producers == []


def test_an_unknown_topic_is_said_so(client):
    assert describe(client, "nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
