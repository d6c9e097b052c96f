"""Three real brokers that are told of each other, one of them killed in the middle, and a client that is not ours."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")

from broker_process import ZurauBroker  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

PATIENCE_S = 60
RECORDS = 1500
QUIET = {"log_level": 0}


def free_ports(count: int) -> list[int]:
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory) -> Iterator[dict[int, ZurauBroker]]:
    root: Path = tmp_path_factory.mktemp("three")
    peers = dict(enumerate(free_ports(3), start=1))
    listed = ",".join(f"127.0.0.1:{port}" for port in peers.values())
    made = {
        broker: ZurauBroker(root / str(broker), node_id=broker, peer=f"127.0.0.1:{port}", join=listed)
        for broker, port in peers.items()
    }
    starts = [threading.Thread(target=each.start) for each in made.values()]
    for each in starts:  # none is ready before all are there
        each.start()
    for each in starts:
        each.join()
    yield made
    for each in made.values():
        each.stop()


@pytest.fixture
def bootstrap(brokers) -> str:
    return ",".join(broker.bootstrap for broker in brokers.values())


def create(bootstrap: str, topic: str, mode: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    deadline = time.monotonic() + PATIENCE_S
    while len(admin.list_topics(timeout=PATIENCE_S).brokers) < 3:
        assert time.monotonic() < deadline, "not all brokers came"
    wanted = NewTopic(topic, num_partitions=2, replication_factor=3, config={"replication.mode": mode})
    admin.create_topics([wanted])[topic].result(PATIENCE_S)


def leader_of(bootstrap: str, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    deadline = time.monotonic() + PATIENCE_S
    while True:
        # Of several brokers, the one that is asked may not have heard of a new topic yet.
        partitions = admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        if 0 in partitions and partitions[0].leader > 0:
            return partitions[0].leader
        assert time.monotonic() < deadline, "nobody leads"


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_nothing_acknowledged_is_lost_or_doubled_when_a_leader_is_killed(brokers, bootstrap, mode):
    create(bootstrap, mode, mode)
    leader = leader_of(bootstrap, mode)
    acknowledged: dict[tuple[int, int], bytes] = {}
    somewhere: list[bytes] = []

    def delivered(error, message) -> None:
        assert error is None, error
        if message.offset() is None:  # a later batch was acknowledged, so this one must be there, wherever it is
            somewhere.append(message.value())
        else:
            acknowledged[message.partition(), message.offset()] = message.value()

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", **QUIET}
    )
    for number in range(RECORDS):
        producer.produce(mode, b"%d" % number, key=b"%d" % (number % 7), on_delivery=delivered)
        producer.poll(0.001)
        if number == RECORDS // 2:
            brokers[leader].kill()
    assert producer.flush(PATIENCE_S) == 0
    brokers[leader].start()
    found = read(bootstrap, mode, RECORDS)
    assert acknowledged.items() <= found.items()
    assert sorted(found.values()) == sorted([*acknowledged.values(), *somewhere])
    assert len(set(found.values())) == len(found) == RECORDS


def read(bootstrap: str, topic: str, count: int) -> dict[tuple[int, int], bytes]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest", **QUIET}
    )
    consumer.subscribe([topic])
    found: dict[tuple[int, int], bytes] = {}
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found[message.partition(), message.offset()] = message.value()
    consumer.close()
    return found
