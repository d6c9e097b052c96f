"""Writing records."""

from __future__ import annotations

import contextlib

import pytest

from zurau.client.admin import Admin, NewTopic
from zurau.client.consumer import Consumer
from zurau.client.errors import ProduceFailed
from zurau.client.offsets import end_offsets, start_offsets
from zurau.client.producer import Producer, ProducerSettings
from zurau.ids import TopicPartition
from zurau.records.compression import Compression


def read_all(cluster, topic):
    """Every record of a topic, by partition."""
    partitions = cluster.partitions_of(topic)
    ends = end_offsets(cluster, partitions)
    found = {partition: [] for partition in partitions}
    with Consumer(cluster) as consumer:
        consumer.assign(start_offsets(cluster, partitions))
        while consumer.positions != ends:
            for partition, records, _ in consumer.poll():
                found[partition] += records
    return found


def test_what_was_written_is_read(cluster, topic):
    with Producer(cluster) as producer:
        delivery = producer.send(topic, b"value", key=b"key", headers=[("a", b"1"), ("b", None)], timestamp_ms=1234)
    (record,) = read_all(cluster, topic)[delivery.partition]
    assert record == (0, 1234, b"key", b"value", [("a", b"1"), ("b", None)])
    assert delivery.offset == 0


@pytest.mark.parametrize("compression", list(Compression))
def test_every_codec_gives_back_what_went_in(cluster, topic, compression):
    values = [b"value %d" % number for number in range(1000)]
    with Producer(cluster, ProducerSettings(compression=compression)) as producer:
        for value in values:
            producer.send(topic, value, partition=1)
    records = read_all(cluster, topic)[TopicPartition(topic, 1)]
    assert [record.value for record in records] == values


def test_records_of_a_partition_keep_their_order_over_many_batches(cluster, topic):
    settings = ProducerSettings(batch_bytes=200, linger_s=0)
    with Producer(cluster, settings) as producer:
        deliveries = [producer.send(topic, b"%d" % number, partition=0) for number in range(300)]
    assert [delivery.offset for delivery in deliveries] == list(range(300))
    records = read_all(cluster, topic)[TopicPartition(topic, 0)]
    assert [int(record.value) for record in records] == list(range(300))


def test_records_with_one_key_share_a_partition(cluster, topic):
    with Producer(cluster) as producer:
        partitions = {producer.send(topic, b"x", key=b"same").partition for _ in range(20)}
    assert len(partitions) == 1


def test_null_and_empty_values_stay_apart(cluster, topic):
    with Producer(cluster) as producer:
        producer.send(topic, None, key=b"gone", partition=0)
        producer.send(topic, b"", key=b"", partition=0)
    records = read_all(cluster, topic)[TopicPartition(topic, 0)]
    assert [(record.key, record.value) for record in records] == [(b"gone", None), (b"", b"")]


@pytest.mark.parametrize(("acks", "offset"), [(-1, 0), (1, 0), (0, -1)])
def test_each_kind_of_acknowledgement_stores_the_record(cluster, topic, acks, offset):
    end_offsets(cluster, [TopicPartition(topic, 0)])  # without acknowledgement, what no leader is there for is lost
    with Producer(cluster, ProducerSettings(acks=acks)) as producer:
        delivery = producer.send(topic, b"x", partition=0)
    assert delivery.offset == offset
    while not end_offsets(cluster, [delivery.partition])[delivery.partition]:
        pass  # nobody said when; it is on its way
    assert len(read_all(cluster, topic)[delivery.partition]) == 1


def test_a_record_that_is_too_large_fails_with_advice(cluster, unique):
    topic = unique("small")
    Admin(cluster).create_topic(NewTopic(topic, 1, settings={"max.message.bytes": "1000"}))
    producer = Producer(cluster)
    delivery = producer.send(topic, b"x" * 2000)
    with pytest.raises(ProduceFailed, match=r"a record was not written: .*`max\.message\.bytes`"):
        producer.flush()
    assert isinstance(delivery.error, ProduceFailed)
    producer.close()


def test_later_records_are_written_after_one_that_failed(cluster, unique):
    topic = unique("small")
    Admin(cluster).create_topic(NewTopic(topic, 1, settings={"max.message.bytes": "1000"}))
    with Producer(cluster) as producer:
        producer.send(topic, b"x" * 2000)
        with pytest.raises(ProduceFailed):
            producer.flush()
        producer.send(topic, b"fine")
    assert [record.value for record in read_all(cluster, topic)[TopicPartition(topic, 0)]] == [b"fine"]


def test_a_partition_that_does_not_exist_fails_at_once(cluster, topic):
    producer = Producer(cluster)
    producer.send(topic, b"x", partition=9)
    with pytest.raises(ProduceFailed, match="has no partition 9"):
        producer.flush()
    producer.close()


def test_a_topic_is_made_by_the_first_record(cluster, unique):
    topic = unique("auto")
    with Producer(cluster) as producer:
        producer.send(topic, b"x")
    assert sum(len(records) for records in read_all(cluster, topic).values()) == 1


def test_an_error_in_the_block_sends_nothing_more(cluster, topic):
    with contextlib.suppress(ZeroDivisionError), Producer(cluster) as producer:
        producer.send(topic, b"x", partition=0)
        raise ZeroDivisionError
    assert read_all(cluster, topic)[TopicPartition(topic, 0)] == []


def test_deliveries_are_reported_as_they_arrive(cluster, topic):
    told = []
    with Producer(cluster, on_delivered=lambda *told_now: told.append(told_now)) as producer:
        for _ in range(3):
            producer.send(topic, b"x", partition=2)
    assert told == [(TopicPartition(topic, 2), 0, 3)]
