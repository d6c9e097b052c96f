"""A broker that goes away and comes back is noticed only as a pause."""

from __future__ import annotations

import socket
import threading

import pytest

from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.client.errors import ProduceFailed
from zurau.client.groups.consumer import GroupConsumer
from zurau.client.producer import Producer, ProducerSettings
from zurau.ids import TopicPartition
from zurau.testing import Broker

HERE = TopicPartition("t", 0)


@pytest.fixture
def address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def read(reader: Consumer | GroupConsumer, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    while len(values) < count:
        values += [record.value for _, records, _ in reader.poll(0.2) for record in records]
    return values


def test_writing_and_reading_go_on_after_a_restart(tmp_path, address):
    with Cluster(address, timeout_s=20) as cluster, Producer(cluster) as producer, Consumer(cluster) as consumer:
        with Broker(dir=str(tmp_path), kafka=address):
            producer.send("t", b"before", partition=0)
            producer.flush()
            consumer.assign({HERE: 0})
            assert read(consumer, 1) == [b"before"]
        producer.send("t", b"meanwhile", partition=0)
        flushing = threading.Thread(target=producer.flush)
        flushing.start()
        with Broker(dir=str(tmp_path), kafka=address):
            flushing.join()
            assert read(consumer, 1) == [b"meanwhile"]


def test_a_member_goes_on_after_a_restart(tmp_path, address):
    with Cluster(address, timeout_s=20) as cluster:
        consumer = GroupConsumer(cluster, "g", ["t"])
        with Broker(dir=str(tmp_path), kafka=address, initial_rebalance_delay_ms=0), Producer(cluster) as producer:
            producer.send("t", b"before", partition=0)
            producer.flush()
            assert read(consumer, 1) == [b"before"]
        with Broker(dir=str(tmp_path), kafka=address, initial_rebalance_delay_ms=0), Producer(cluster) as producer:
            producer.send("t", b"after", partition=0)
            producer.flush()
            assert read(consumer, 1) == [b"after"]
            consumer.close()


def test_what_cannot_be_delivered_is_given_up_on_in_the_end(address):
    with Cluster(address, timeout_s=20) as cluster:
        producer = Producer(cluster, ProducerSettings(delivery_timeout_s=0))
        with Broker(kafka=address):
            producer.send("t", b"x", partition=0)
            producer.flush()
        producer.send("t", b"y", partition=0)
        with pytest.raises(ProduceFailed, match=r"a record was not written after 0 s .*`zurau cluster`"):
            producer.flush()
        producer.close()
