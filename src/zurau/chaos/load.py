"""Clients that use a cluster all the time, and tell the history what they were told.

Each is a thread with connections of its own, as a program of its own would have. Producers are idempotent and write a
little to every partition again and again: seldom enough to leave the machine to the brokers, often enough to show for
how long nothing could be written.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from zurau.chaos.history import History, value_of
from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.client.errors import ClientError
from zurau.client.groups.consumer import GroupConsumer
from zurau.client.groups.membership import GroupSettings
from zurau.client.producer import Delivery, Producer, ProducerSettings
from zurau.ids import Offset, TopicPartition

#: A member that is silent for so long is put out of its group; short, so that a run sees groups change often.
GROUP = GroupSettings(session_timeout_ms=6000, rebalance_timeout_ms=6000, heartbeat_interval_s=0.5)
GROUP_NAME = "chaos-group"
#: Records of one producer and partition that may wait for their acknowledgement.
WAITING_MAX = 200
COMMIT_S = 0.5
POLL_S = 0.2
#: How long a producer naps between looking for acknowledgements.
LOOK_S = 0.002
PADDING = b"." * 80


class Pace(NamedTuple):
    """How hard clients work."""

    #: A producer writes one record to every partition so often.
    interval_s: float = 0.02


class Acknowledgement(NamedTuple):
    at_s: float
    offset: Offset


class ProducerLoad(Protocol):
    """What the experiment sees of a producer, whoever made it."""

    kind: str
    name: str
    acknowledgements: Mapping[TopicPartition, list[Acknowledgement]]

    def start(self) -> None: ...
    def stop(self) -> None:
        """Write no more, and wait for what is still to be acknowledged."""
        ...


class Client(threading.Thread):
    """Runs until it is stopped; an error that no client should see ends it and is kept."""

    kind = "zurau"

    def __init__(self, name: str, history: History) -> None:
        super().__init__(name=name, daemon=True)
        self.history = history
        self.stopping = threading.Event()
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self.work()
        except Exception as error:  # noqa: BLE001 - told by whoever started this thread
            self.failure = error

    def work(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self.stopping.set()
        self.join()


class OurProducer(Client):
    def __init__(
        self, number: int, bootstrap: str, partitions: Sequence[TopicPartition], history: History, pace: Pace
    ) -> None:
        super().__init__(f"once-zurau{number}", history)
        self.bootstrap = bootstrap
        self._pace = pace
        self._maker = self.name
        self._made = 0
        self._waiting: dict[TopicPartition, deque[tuple[bytes, Delivery]]] = {each: deque() for each in partitions}
        self.acknowledgements: dict[TopicPartition, list[Acknowledgement]] = {each: [] for each in partitions}

    def work(self) -> None:
        settings = ProducerSettings(linger_s=0, delivery_timeout_s=120, may_create_topics=False)
        with Cluster(self.bootstrap, client_id=self.name) as cluster:
            producer = Producer(cluster, settings)
            next_s = time.monotonic()
            while not self.stopping.is_set():
                with suppress(ClientError):  # the deliveries tell
                    if time.monotonic() >= next_s:
                        next_s = max(next_s + self._pace.interval_s, time.monotonic())
                        self._write(producer)
                    producer.poll()
                self._look()
                time.sleep(LOOK_S)
            with suppress(ClientError):
                producer.close()
            self._look()

    def _write(self, producer: Producer) -> None:
        for partition, waiting in self._waiting.items():
            if len(waiting) < WAITING_MAX:
                value = value_of(self._maker, self._made, PADDING)
                self._made += 1
                waiting.append((value, producer.send(partition.topic, value, partition=partition.partition)))

    def _look(self) -> None:
        """Tell of what was acknowledged; what was given up on may or may not be there."""
        now_s = time.monotonic()
        for partition, waiting in self._waiting.items():
            while waiting and (waiting[0][1].offset is not None or waiting[0][1].error is not None):
                value, delivery = waiting.popleft()
                if delivery.offset is None:
                    self.history.count("given up")
                    self._maker = f"{self.name}-{self._made}"  # another producer id: its order is its own
                    continue
                self.acknowledgements[partition].append(Acknowledgement(now_s, delivery.offset))
                self.history.acknowledged(partition, delivery.offset, [value])


class Reader(Client):
    """Reads every partition from the beginning, and goes on."""

    def __init__(self, number: int, bootstrap: str, partitions: Sequence[TopicPartition], history: History) -> None:
        super().__init__(f"reader{number}", history)
        self.bootstrap = bootstrap
        self._partitions = partitions

    def work(self) -> None:
        with Cluster(self.bootstrap, client_id=self.name) as cluster, Consumer(cluster) as consumer:
            consumer.assign(dict.fromkeys(self._partitions, 0))
            while not self.stopping.is_set():
                with suppress(ClientError):
                    for partition, records, high_watermark in consumer.poll(POLL_S):
                        found = [(record.offset, bytes(record.value or b"")) for record in records]
                        self.history.read(partition, found, high_watermark)


class GroupMember(Client):
    """Shares the partitions with the other members, and commits how far it got."""

    def __init__(self, number: int, bootstrap: str, topic: str, history: History) -> None:
        super().__init__(f"member{number}", history)
        self.bootstrap = bootstrap
        self._topic = topic
        self._generation: tuple[str, int] | None = None
        #: Partitions in which nothing was read since they were assigned.
        self._fresh: set[TopicPartition] = set()
        self._committed_s = 0.0
        #: When a commit was last confirmed.
        self.confirmed_s = 0.0

    def work(self) -> None:
        with Cluster(self.bootstrap, client_id=self.name) as cluster:
            consumer = GroupConsumer(cluster, GROUP_NAME, [self._topic], settings=GROUP)
            while not self.stopping.is_set():
                with suppress(ClientError):
                    self._round(consumer)
            with suppress(ClientError):
                consumer.close()

    def _round(self, consumer: GroupConsumer) -> None:
        if time.monotonic() - self._committed_s >= COMMIT_S and self._generation is not None:
            self._commit(consumer)
        known = self.history.known_commits(GROUP_NAME)
        arrived = consumer.poll(POLL_S)
        if self._generation != (consumer.member_id, consumer.generation):
            self._generation = (consumer.member_id, consumer.generation)
            self._fresh = set(consumer.assignment)
            self.history.assigned(GROUP_NAME, consumer.generation, consumer.member_id, self._fresh)
            self.history.count("assignments")
        for partition, records, high_watermark in arrived:
            found = [(record.offset, bytes(record.value or b"")) for record in records]
            self.history.read(partition, found, high_watermark)
            if found and partition in self._fresh:
                self._fresh.discard(partition)
                self.history.found_committed(GROUP_NAME, {partition: found[0][0]}, known)

    def _commit(self, consumer: GroupConsumer) -> None:
        self._committed_s = time.monotonic()
        generation, offsets = consumer.generation, consumer.positions
        newest = self.history.newest_generation(GROUP_NAME)
        consumer.commit()
        self.history.committed(GROUP_NAME, generation, offsets, newest)
        self.confirmed_s = time.monotonic()
