"""Three real brokers are stopped and started one after the other under load, by SIGTERM: clients that are not ours lose
nothing, get nothing twice, and see no error that they would have to handle."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")

from zurau.testing import Cluster  # noqa: E402

PATIENCE_S = 120
PARTITIONS = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        yield cluster


class Load:
    """A producer with default retries that notes every acknowledgement and every error it is told of."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 0}
        )
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.errors: list[object] = []
        self.sent = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.is_set():
            value = b"%d" % self.sent
            self._producer.produce(self._topic, value, partition=self.sent % PARTITIONS, on_delivery=self._delivered)
            self.sent += 1
            self._producer.poll(0.002)

    def _delivered(self, error, message) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.acknowledged[message.partition(), message.offset()] = message.value()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0


@pytest.mark.parametrize("mode", ["quorum", "isr"])
def test_a_rolling_restart_loses_nothing_and_shows_no_error(cluster, mode):
    cluster.create_topic(mode, partitions=PARTITIONS, replication_factor=3, replication_mode=mode)
    load = Load(cluster.bootstrap, mode)
    reader = Reader(cluster.bootstrap, mode)
    for broker in cluster.brokers:
        before = len(load.acknowledged)
        cluster.shut_down(broker)
        cluster.start_again(broker)
        cluster.wait_until_ready(broker)
        wait_until(lambda before=before: len(load.acknowledged) > before, "nothing is acknowledged any more")
    load.end()
    assert not load.errors
    assert len(load.acknowledged) == load.sent
    assert len(set(load.acknowledged.values())) == load.sent
    wait_until(lambda: len(reader.found) >= load.sent, "not everything was read")
    reader.end()
    assert reader.found == load.acknowledged
    assert not reader.errors


class Reader:
    """A member of a group that is there all the time."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest", "log_level": 0}
        )
        self._consumer.subscribe([topic])
        self.found: dict[tuple[int, int], bytes] = {}
        self.errors: list[object] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.is_set():
            message = self._consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is not None:
                self.errors.append(message.error())
            else:
                assert (
                    self.found.setdefault((message.partition(), message.offset()), message.value()) == message.value()
                )
        self._consumer.close()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join()


def wait_until(is_true, problem: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline, problem
        time.sleep(0.05)
