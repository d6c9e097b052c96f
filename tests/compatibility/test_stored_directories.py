"""Directories that earlier releases wrote are opened by this one, with everything that was acknowledged."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_process import ZurauBroker
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from stored_directory import (
    COMMITTED,
    DELETED,
    GROUP,
    KEYS,
    PARTITIONS,
    RECORDS,
    TOPICS,
    first_offset,
    key,
    numbers_of,
    value,
)

STORED = sorted((Path(__file__).parent / "stored").glob("*.tar.xz"))
#: Nothing of the group expires, however old the directory is.
YEARS_MINUTES = 2**31 - 1


@pytest.fixture(scope="module", params=STORED, ids=lambda path: path.name.removesuffix(".tar.xz"))
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZurauBroker]:
    """A broker on a copy of the directory."""
    directory = tmp_path_factory.mktemp("stored")
    with tarfile.open(request.param) as archive:
        archive.extractall(directory, filter="data")
    with ZurauBroker(directory, offsets_retention_minutes=YEARS_MINUTES) as broker:
        yield broker


@pytest.mark.parametrize("topic", ["plain", "packed"])
def test_every_record_is_where_it_was(opened: ZurauBroker, topic: str) -> None:
    for partition in range(PARTITIONS):
        numbers, messages = numbers_of(partition), read(opened, topic, partition)
        assert [message.offset() for message in messages] == list(range(len(numbers)))
        assert [message.value() for message in messages] == [value(topic, number) for number in numbers]
        assert [message.headers() for message in messages] == [[("number", b"%d" % number)] for number in numbers]


def test_a_compacted_topic_has_the_last_value_of_each_key(opened: ZurauBroker) -> None:
    latest = {
        message.key(): message.value()
        for partition in range(PARTITIONS)
        for message in read(opened, "latest", partition)
    }
    assert latest == {key(number): value("latest", number) for number in range(RECORDS - KEYS, RECORDS)}


def test_deleted_records_stay_deleted_and_the_others_are_there(opened: ZurauBroker) -> None:
    for partition in range(PARTITIONS):
        assert first_offset(opened.bootstrap, "head-deleted", partition) == DELETED
        expected = [value("head-deleted", number) for number in numbers_of(partition)[DELETED:]]
        assert [message.value() for message in read(opened, "head-deleted", partition)] == expected


def test_a_group_goes_on_where_it_was(opened: ZurauBroker) -> None:
    consumer = Consumer({"bootstrap.servers": opened.bootstrap, "group.id": GROUP})
    places = [TopicPartition("plain", partition) for partition in range(PARTITIONS)]
    assert [place.offset for place in consumer.committed(places, timeout=60)] == [COMMITTED] * PARTITIONS
    consumer.close()


def test_topics_keep_their_configs(opened: ZurauBroker) -> None:
    admin = AdminClient({"bootstrap.servers": opened.bootstrap})
    for topic, expected in TOPICS.items():
        resource = ConfigResource(ResourceType.TOPIC, topic)
        configs = admin.describe_configs([resource])[resource].result(30)
        assert {name: configs[name].value for name in expected} == expected


def test_writing_goes_on_behind_what_is_there(opened: ZurauBroker) -> None:
    producer = Producer({"bootstrap.servers": opened.bootstrap, "enable.idempotence": True})
    offsets: list[int] = []
    producer.produce("added-to", b"more", partition=0, on_delivery=lambda _, message: offsets.append(message.offset()))
    assert producer.flush(60) == 0
    assert offsets == [len(numbers_of(0))]


def read(broker: ZurauBroker, topic: str, partition: int) -> list[Message]:
    """All of a partition, from its start to its end."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "looking", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, first_offset(broker.bootstrap, topic, partition))])
    messages: list[Message] = []
    while (message := consumer.poll(60)) is not None and message.error() is None:
        messages.append(message)
    assert message is not None, f"the end of {topic}-{partition} was not reached"
    consumer.close()
    return messages
