"""The broker is killed with -9 under load, again and again, and nothing that was acknowledged is lost or doubled.

An idempotent librdkafka producer and a consumer group (both from real clients, in threads here) go on through every
kill; the broker comes back on the same directory and port. `ZURAU_KILL_ROUNDS=50` makes this a long run, and
`ZURAU_KILL_SEED` repeats the moments of one. With `ZURAU_AGAINST=cluster` it is the leader of one of the partitions, on
three brokers.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from broker_process import ZurauBroker
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from driver import wait_until

from zurau.testing import Cluster

ROUNDS = int(os.environ.get("ZURAU_KILL_ROUNDS", "4"))
SEED = int(os.environ.get("ZURAU_KILL_SEED") or random.SystemRandom().randrange(2**32))
TOPIC = "survivors"
GROUP = "survivors-group"
PARTITIONS = 3
QUIET = {"log_level": 0}
#: Who leads or coordinates has changed, or is just being decided.
LOOK_AGAIN = {
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._TRANSPORT,
}
Answer = TypeVar("Answer")


class KilledLeaders:
    """Three brokers, of which a leader dies each time."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self._cluster = cluster
        self._chance = chance
        self._dead = 0

    @property
    def bootstrap(self) -> str:
        return self._cluster.bootstrap

    def kill(self) -> None:
        self._dead = self._cluster.leader_of(TOPIC, self._chance.randrange(PARTITIONS))
        self._cluster.kill(self._dead)

    def start(self) -> None:
        self._cluster.restart(self._dead)


@contextmanager
def killed(directory: Path, chance: random.Random, **settings: object) -> Iterator[ZurauBroker | KilledLeaders]:
    if os.environ.get("ZURAU_AGAINST") == "cluster":
        with Cluster(brokers=3, default_replication_factor=3, **settings) as cluster:
            yield KilledLeaders(cluster, chance)
    else:
        with ZurauBroker(directory, **settings) as broker:
            yield broker


class Load(threading.Thread):
    """Numbered records, one after the other, until told to stop; what was acknowledged is written down."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.failures: list[str] = []
        self.enough = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 50,
                "message.timeout.ms": 120_000,
                "retry.backoff.ms": 50,
                "reconnect.backoff.max.ms": 200,
                **QUIET,
            }
        )

    def run(self) -> None:
        number = 0
        while not self.enough.is_set():
            if len(self._producer) < 2000:
                self._producer.produce(TOPIC, value=str(number), partition=number % PARTITIONS, callback=self._told)
                number += 1
            self._producer.poll(0.001 if number % 20 == 0 else 0)
        self._producer.flush(120)

    def _told(self, error, message) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            place = (message.partition(), message.offset())
            assert place not in self.acknowledged, f"two records were acknowledged at {place}"
            self.acknowledged[place] = message.value()


class Reader(threading.Thread):
    """The only member of a group: reads and commits, and writes down where it was each time."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.read: dict[tuple[int, int], bytes] = {}
        self.changed: list[str] = []
        self.committed: dict[int, int] = defaultdict(int)
        self.enough = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 500,
                "reconnect.backoff.max.ms": 200,
                **QUIET,
            }
        )

    def run(self) -> None:
        self._consumer.subscribe([TOPIC])
        while not self.enough.is_set():
            messages = [message for message in self._consumer.consume(200, 0.2) if message.error() is None]
            for message in messages:
                self._take((message.partition(), message.offset()), message.value())
            if messages:
                self._commit()
        self._consumer.close()

    def _take(self, place: tuple[int, int], value: bytes) -> None:
        if self.read.setdefault(place, value) != value:
            self.changed.append(f"{place} was {self.read[place]!r} and became {value!r}")

    def _commit(self) -> None:
        try:
            done = self._consumer.commit(asynchronous=False)
        except KafkaException:
            return  # the broker is away just now; the next commit says at least as much
        for partition in done:
            if partition.error is None and partition.offset >= 0:
                self.committed[partition.partition] = partition.offset


@pytest.mark.timeout(max(300, ROUNDS * 30))
@pytest.mark.parametrize(
    "settings",
    [
        {"flush": "fsync"},
        {"flush": "os"},
        {"flush": "fsync", "internal_segment_bytes": 20_000, "index_interval_bytes": 500},
    ],
    ids=["fsync", "os", "small-segments"],
)
def test_nothing_acknowledged_is_lost_or_doubled_by_kill_nine(tmp_path, settings):
    chance = random.Random(SEED)
    print(f"ZURAU_KILL_SEED={SEED}")
    with killed(tmp_path, chance, **settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, -1)])[TOPIC].result(timeout=30)
        load, reader = Load(broker.bootstrap), Reader(broker.bootstrap)
        load.start()
        reader.start()
        for _ in range(ROUNDS):
            kill_once(broker, load, reader, chance)
        load.enough.set()
        load.join()
        last = {partition: end_offset(broker.bootstrap, partition) for partition in range(PARTITIONS)}
        wait_until("the group reads to the end", lambda: len(reader.read) >= sum(last.values()))
        reader.enough.set()
        reader.join()
        check(load, reader, last)


def kill_once(broker: ZurauBroker | KilledLeaders, load: Load, reader: Reader, chance: random.Random) -> None:
    """Let it work a moment, kill it, bring it back, and see that both clients and all offsets went on."""
    acknowledged, read = len(load.acknowledged), len(reader.read)
    wait_until("more was acknowledged", lambda: len(load.acknowledged) > acknowledged + chance.randrange(20, 2000))
    wait_until("more was read", lambda: len(reader.read) > read)
    time.sleep(chance.random() * 0.2)
    broker.kill()
    committed = dict(reader.committed)
    told = max_offsets(load.acknowledged)
    broker.start()
    for partition, offset in told.items():
        assert end_offset(broker.bootstrap, partition) > offset, f"acknowledged records of {partition} are gone"
    for partition, offset in committed.items():
        assert committed_offset(broker.bootstrap, partition) >= offset, f"the group's place in {partition} went back"


def check(load: Load, reader: Reader, last: dict[int, int]) -> None:
    assert load.failures == []
    assert reader.changed == []
    lost = {place: value for place, value in load.acknowledged.items() if reader.read.get(place) != value}
    assert not lost, f"{len(lost)} acknowledged records are gone or changed, for example {sorted(lost.items())[:3]}"
    values = list(reader.read.values())
    assert len(values) == len(set(values)), "a record is in the log twice"
    for partition, end in last.items():
        numbers = [int(reader.read[partition, offset]) for offset in range(end)]
        assert numbers == sorted(numbers), f"records of partition {partition} are out of order"


def max_offsets(places) -> dict[int, int]:
    highest: dict[int, int] = {}
    for partition, offset in list(places):
        highest[partition] = max(offset, highest.get(partition, -1))
    return highest


def answered(ask: Callable[[], Answer]) -> Answer:
    """On three brokers somebody else may lead just now: these questions are asked once, and it is for us to repeat."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return ask()
        except KafkaException as error:
            if time.monotonic() > deadline or error.args[0].code() not in LOOK_AGAIN:
                raise
        time.sleep(0.05)


def end_offset(bootstrap: str, partition: int) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", **QUIET})
    _, end = answered(lambda: consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=30))
    consumer.close()
    return end


def committed_offset(bootstrap: str, partition: int) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, **QUIET})
    (found,) = answered(lambda: consumer.committed([TopicPartition(TOPIC, partition)], timeout=30))
    consumer.close()
    return -1 if found.offset == OFFSET_INVALID else found.offset
