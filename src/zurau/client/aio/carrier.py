"""The producer's thread: takes records in, gathers them into batches, carries them, and tells what became of each.

While a partition's batch is on its way the records behind it gather in the next one, so that many small writes of many
tasks become few requests, without waiting on purpose.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from zurau.client.cluster.cluster import Cluster
from zurau.client.errors import ClientError, ProduceFailed
from zurau.client.producer.accumulator import Accumulator, Delivery
from zurau.client.producer.sender import ProducerSettings, Sender
from zurau.ids import Offset, TopicPartition
from zurau.records.builder import NewRecord

#: How long one round of waiting for answers lasts at most.
ROUND_S = 1.0


class Outgoing:
    """One record, and what became of it: an offset or an error."""

    __slots__ = ("error", "offset", "partition", "record", "size_bytes", "topic")

    def __init__(self, topic: str, partition: int | None, record: NewRecord, size_bytes: int) -> None:
        self.topic = topic
        self.partition = partition
        self.record = record
        self.size_bytes = size_bytes
        self.offset: Offset = -1
        self.error: BaseException | None = None


class Carrier:
    """`put`, `hurry` and `stop` may be called from any thread; `on_settled` is called from the carrier's own, with the
    records of a partition in order."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ProducerSettings,
        on_settled: Callable[[list[Outgoing]], None],
        on_ended: Callable[[BaseException], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._on_settled = on_settled
        self._on_ended = on_ended
        self._batches = Accumulator(batch_bytes=settings.batch_bytes, linger_s=settings.linger_s)
        self._sender = Sender(cluster, self._batches, settings, lambda *_: None)
        self._inbox: deque[Outgoing] = deque()
        self._carried: dict[TopicPartition, deque[tuple[Delivery, Outgoing]]] = {}
        self._settled: list[Outgoing] = []
        self._is_stopping = False
        self._hurries = False
        self._is_signalled = False
        self._bell, self._ear = socket.socketpair()
        for end in (self._bell, self._ear):
            end.setblocking(False)

    def start(self) -> None:
        threading.Thread(target=self._run, name="zurau-producer", daemon=True).start()

    def put(self, outgoing: Outgoing) -> None:
        self._inbox.append(outgoing)
        self._ring()

    def hurry(self) -> None:
        """Send what there is, without waiting for more."""
        self._hurries = True
        self._ring()

    def stop(self) -> None:
        """Stop after this round; what was not acknowledged may or may not be in the log."""
        self._is_stopping = True
        self._ring()

    def _run(self) -> None:
        error: BaseException = ProduceFailed("the producer was closed before this record was acknowledged")
        try:
            while not self._is_stopping:
                self._round()
        except BaseException as broken:  # noqa: BLE001 - a defect: told to everybody who waits for a record
            error = broken
        finally:
            self._on_settled(self._settled)
            self._sender.close()
            self._cluster.close()
            self._bell.close()
            self._ear.close()
            self._on_ended(error)

    def _round(self) -> None:
        self._take_in()
        if self._hurries:
            self._hurries = False
            self._batches.close_all()
        else:
            self._batches.close_due(self._sender.in_flight)
        if self._batches.has_closed or self._sender.in_flight:
            self._sender.work(self._wait_s(), self._ear.fileno())
        elif not self._settled:
            self._listen(self._wait_s())
        with suppress(ProduceFailed):  # told with each of its records
            self._sender.raise_failure()
        self._tell()

    def _wait_s(self) -> float:
        """Until an open batch may be due; one without a time to linger goes as soon as its partition is free."""
        return min(ROUND_S, self._settings.linger_s or ROUND_S) if self._batches.has_open else ROUND_S

    def _take_in(self) -> None:
        with suppress(BlockingIOError):
            self._ear.recv(4096)
        self._is_signalled = False
        while self._inbox:
            outgoing = self._inbox.popleft()
            try:
                target = self._partition_of(outgoing)
            except ClientError as error:
                outgoing.error = error
                self._settled.append(outgoing)
                continue
            delivery, _ = self._batches.add(target, outgoing.record)
            self._carried.setdefault(target, deque()).append((delivery, outgoing))

    def _partition_of(self, outgoing: Outgoing) -> TopicPartition:
        topic, may_create = outgoing.topic, self._settings.may_create_topics
        known = self._cluster.metadata.topics.get(topic) or self._cluster.retry(
            lambda: self._cluster.topic(topic, may_create=may_create)
        )
        if outgoing.partition is not None:
            return TopicPartition(topic, outgoing.partition)
        return self._batches.choose_partition(topic, outgoing.record.key, len(known.partitions))

    def _tell(self) -> None:
        """Batches of a partition are settled in order, so it is enough to look at the first ones."""
        for partition, carried in list(self._carried.items()):
            while carried:
                delivery, outgoing = carried[0]
                offset, outgoing.error = delivery.offset, delivery.error
                if offset is None and outgoing.error is None:
                    break
                outgoing.partition = partition.partition
                outgoing.offset = -1 if offset is None else offset
                self._settled.append(outgoing)
                carried.popleft()
            if not carried:
                del self._carried[partition]
        if self._settled:
            settled, self._settled = self._settled, []
            self._on_settled(settled)

    def _listen(self, timeout_s: float) -> None:
        self._ear.settimeout(timeout_s)
        with suppress(TimeoutError, BlockingIOError):
            self._ear.recv(4096, socket.MSG_PEEK)
        self._ear.setblocking(False)

    def _ring(self) -> None:
        if not self._is_signalled:
            self._is_signalled = True
            with suppress(BlockingIOError, OSError):  # it is full of signals, or has ended
                self._bell.send(b"\0")


def new_record(
    value: bytes | None, key: bytes | None, headers: Iterable[tuple[str, bytes | None]], timestamp_ms: int | None
) -> NewRecord:
    timestamp = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    return NewRecord(key=key, value=value, headers=tuple(headers), timestamp=timestamp)
