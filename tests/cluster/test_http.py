"""HTTP at three brokers: each takes what any of them leads, also while leaders die."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from itertools import cycle
from typing import Any

import pytest

from zurau.client.cluster import Cluster as ClusterClient
from zurau.client.consumer import Consumer
from zurau.client.offsets import end_offsets
from zurau.ids import TopicPartition
from zurau.testing import Cluster

PATIENCE_S = 90


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, http="127.0.0.1:0") as cluster:
        yield cluster


def ask(cluster: Cluster, broker: int, method: str, path: str, **values: Any) -> tuple[int, Any]:
    host, port = cluster.http_address_of(broker).split(":")
    connection = HTTPConnection(host, int(port), timeout=PATIENCE_S)
    try:
        connection.request(method, path, json.dumps(values) if values else None, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content else None
    finally:
        connection.close()


def stored(cluster: Cluster, topic: str, partitions: int) -> list[str]:
    names = [TopicPartition(topic, index) for index in range(partitions)]
    found: list[str] = []
    with ClusterClient(cluster.bootstrap) as client, Consumer(client) as consumer:
        consumer.assign(dict.fromkeys(names, 0))
        ends = end_offsets(client, names)
        while any(consumer.positions[name] < end for name, end in ends.items()):
            for _, records, _ in consumer.poll():
                found += [bytes(record.value).decode() for record in records]
    return found


def test_any_broker_takes_messages_for_all_partitions_and_knows_all_producers(cluster):
    assert ask(cluster, 1, "POST", "/topics", topic="orders", partitions=3, replication_factor=3)[0] == 201
    leaders = set()
    for broker in cluster.brokers:
        status, producer = ask(cluster, broker, "POST", "/producer/register", topic="orders")
        assert status == 200
        for other in cluster.brokers:
            messages = [{"message": f"{broker} {other} {index}", "partition": index} for index in range(3)]
            status, places = ask(
                cluster, other, "POST", "/producer/produce", topic="orders", messages=messages, **producer
            )
            assert status == 200, places
        _, described = ask(cluster, broker, "GET", "/topics/orders/partitions")
        leaders |= {each["leader"] for each in described["partitions"]}
    assert len(leaders) > 1, "some of it was led elsewhere"
    for broker in cluster.brokers:
        found = [
            record["message"]
            for index in range(3)
            for record in ask(cluster, broker, "GET", f"/topics/orders/partitions/{index}/records")[1]["records"]
        ]
        assert sorted(found) == sorted(stored(cluster, "orders", 3)), "any broker reads all of them"
    wanted = [f"{broker} {other} {index}" for broker in (1, 2, 3) for other in (1, 2, 3) for index in range(3)]
    assert sorted(stored(cluster, "orders", 3)) == sorted(wanted)


def store(cluster: Cluster, brokers: list[int], message: str, producer: dict[str, str]) -> None:
    """Through one broker after the other until it is acknowledged."""
    deadline = time.monotonic() + PATIENCE_S
    for broker in cycle(brokers):
        assert time.monotonic() < deadline, "it takes no messages any more"
        with suppress(OSError, HTTPException):
            status, _ = ask(cluster, broker, "POST", "/producer/produce", topic="orders", message=message, **producer)
            if status == 200:
                return
            assert status in (503, 504)


def test_what_was_acknowledged_survives_leaders_that_are_killed_and_brought_back(cluster):
    ask(cluster, 1, "POST", "/topics", topic="orders", partitions=1, replication_factor=3)
    _, producer = ask(cluster, 1, "POST", "/producer/register", topic="orders")
    messages = [f"{step} {number}" for step in range(3) for number in range(20)]
    for message in messages:
        if message in ("1 0", "2 0"):
            killed = cluster.leader_of("orders")
            cluster.kill(killed)
            store(cluster, [broker for broker in cluster.brokers if broker != killed], message, producer)
            cluster.restart(killed)
        else:
            store(cluster, list(cluster.brokers), message, producer)
    found = stored(cluster, "orders", 1)
    assert list(dict.fromkeys(found)) == messages, "one that was not acknowledged at first may be there twice"


def consume(cluster: Cluster, brokers: list[int], consumer: dict[str, str]) -> str | None:
    """The next message, through one broker after the other until one answers."""
    query = f"topic=orders&consumer_id={consumer['consumer_id']}"
    deadline = time.monotonic() + PATIENCE_S
    for broker in cycle(brokers):
        assert time.monotonic() < deadline, "nobody answers any more"
        with suppress(OSError, HTTPException):
            status, consumed = ask(cluster, broker, "GET", f"/consumer/consume?{query}")
            if status in (200, 204):
                return consumed and consumed["message"]
            assert status in (503, 504), consumed
    raise AssertionError("there are brokers")


def test_consumers_get_every_message_through_any_broker_while_coordinators_are_killed(cluster):
    ask(cluster, 1, "POST", "/topics", topic="orders", partitions=3, replication_factor=3)
    _, producer = ask(cluster, 1, "POST", "/producer/register", topic="orders")
    consumers = [ask(cluster, broker, "POST", "/consumer/register", topic="orders")[1] for broker in cluster.brokers]
    messages = [str(number) for number in range(30)]
    for message in messages:
        store(cluster, list(cluster.brokers), message, producer)
    found: list[list[str]] = [[] for _ in consumers]
    for killed in (1, 2):
        cluster.kill(killed)
        alive = [broker for broker in cluster.brokers if broker != killed]
        for consumer, received in zip(consumers, found, strict=True):
            for turn in range(5):
                message = consume(cluster, alive[turn % 2 :] + alive, consumer)
                assert message is not None, "there are more"
                received.append(message)
        cluster.restart(killed)
    for consumer, received in zip(consumers, found, strict=True):
        while (message := consume(cluster, list(cluster.brokers), consumer)) is not None:
            received.append(message)
        assert set(received) == set(messages), "every message, and some perhaps twice"
        assert len(received) < 2 * len(messages)
