"""Consumers read from the broker of their rack (KIP-392), and go back to the leader when that one dies."""

from __future__ import annotations

import json
import time

import pytest
from confluent_kafka import Consumer, Producer

from zurau.client import cluster as client
from zurau.client.consumer.fetcher import Fetcher, FetchSettings
from zurau.ids import TopicPartition
from zurau.testing import Cluster

RECORDS = 300
WITHIN_S = 60


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_a_consumer_reads_from_its_rack_and_from_elsewhere_when_that_dies(mode):
    read_from: dict[str, int] = {}

    def told(text: str) -> None:
        for number, partition in json.loads(text)["topics"].get("t", {}).get("partitions", {}).items():
            read_from[number] = partition["broker"]

    with Cluster(brokers=3, racks=("a", "b", "c")) as cluster:
        cluster.create_topic("t", partitions=3, replication_factor=3, replication_mode=mode)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": "near",
                "client.rack": "b",
                "auto.offset.reset": "earliest",
                "statistics.interval.ms": 100,
                "stats_cb": told,
            }
        )
        consumer.subscribe(["t"])
        seen: list[tuple[int, int]] = []
        _produce(producer)
        _poll_until(consumer, seen, lambda: len(seen) >= RECORDS and [read_from.get(n) for n in "012"] == [2, 2, 2])
        cluster.kill(2)
        _produce(producer)
        _poll_until(consumer, seen, lambda: len(set(seen)) >= 2 * RECORDS)
        consumer.close()
        assert len(set(seen)) == len(seen) == 2 * RECORDS


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_our_own_consumer_does_so_too(mode):
    with Cluster(brokers=3, racks=("a", "b", "c")) as cluster, client.Cluster(cluster.bootstrap) as connected:
        cluster.create_topic("t", partitions=3, replication_factor=3, replication_mode=mode)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        _produce(producer)
        fetcher = Fetcher(connected, FetchSettings(rack="b"))
        fetcher.assign({TopicPartition("t", index): 0 for index in range(3)})

        def read_until(is_done) -> None:
            deadline_s = time.monotonic() + WITHIN_S
            while not is_done():
                assert time.monotonic() < deadline_s, fetcher.positions
                fetcher.poll(0.1)

        def has_read(count: int) -> bool:
            return sum(fetcher.positions.values()) >= count

        read_until(lambda: has_read(RECORDS) and set(fetcher.read_from) == {2})
        cluster.kill(2)
        _produce(producer)
        read_until(lambda: has_read(2 * RECORDS))
        assert 2 not in fetcher.read_from
        fetcher.close()


def _produce(producer: Producer) -> None:
    for number in range(RECORDS):
        producer.produce("t", b"%d" % number, partition=number % 3)
    assert producer.flush(WITHIN_S) == 0


def _poll_until(consumer: Consumer, seen: list[tuple[int, int]], is_done) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not is_done():
        assert time.monotonic() < deadline_s, f"{len(seen)} records were read"
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            seen.append((message.partition(), message.offset()))
