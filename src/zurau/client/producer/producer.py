"""Writes records: gathers batches, sends them to the leaders, and tries again until they are acknowledged.

While the broker stores one batch the caller fills the next. There is no thread behind this: batches leave from within
`send`, `poll` and `flush`, and `Sender` carries them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from zurau.client.cluster.cluster import Cluster
from zurau.client.cluster.metadata import TopicInfo
from zurau.client.producer.accumulator import Accumulator, Delivery, PackedBatch
from zurau.client.producer.sender import OnDelivered, ProducerSettings, Sender
from zurau.ids import TopicPartition
from zurau.ports import Buffer
from zurau.records.builder import NewRecord

#: How long one round of waiting for answers lasts at most.
ROUND_S = 1.0


class Producer:
    """Close it, or use it in a `with` block: closing flushes."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ProducerSettings | None = None,
        *,
        on_delivered: OnDelivered = lambda *_: None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings or ProducerSettings()
        self._batches = Accumulator(batch_bytes=self._settings.batch_bytes, linger_s=self._settings.linger_s)
        self._sender = Sender(cluster, self._batches, self._settings, on_delivered)

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Delivery:
        """Hand over one record. Raises what went wrong with an earlier one, if anything did."""
        self._sender.raise_failure()
        known = self._cluster.metadata.topics.get(topic) or self._find(topic)
        if partition is None:
            target = self._batches.choose_partition(topic, key, len(known.partitions))
        else:
            target = TopicPartition(topic, partition)
        timestamp = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        record = NewRecord(key=key, value=value, headers=tuple(headers), timestamp=timestamp)
        delivery, is_due = self._batches.add(target, record)
        if is_due:
            self._send_on()
        return delivery

    def send_packed(
        self,
        partition: TopicPartition,
        payload: Buffer,
        record_count: int,
        timestamps_ms: tuple[int, int] | None = None,
    ) -> None:
        """Hand over encoded records, the inside of one batch, with offsets from 0 on (records/builder.py).

        `timestamps_ms` are the first record's and the largest; without them every record is of this moment.
        """
        self._sender.raise_failure()
        now_ms = int(time.time() * 1000)
        self._batches.add_packed(PackedBatch(partition, payload, record_count, timestamps_ms or (now_ms, now_ms)))
        self._send_on()

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has right now; it is created if that is allowed."""
        self._cluster.forget([topic])
        return len(self._find(topic).partitions)

    def poll(self) -> None:
        """Send what is due and take in what was acknowledged, without waiting."""
        self._batches.close_due()
        self._sender.work(0)

    def flush(self) -> None:
        """Return when everything handed over is acknowledged; raise `ProduceFailed` if something cannot be."""
        self._batches.close_all()
        while self._batches.buffered_bytes:
            self._sender.work(ROUND_S)
        self._sender.raise_failure()

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._sender.close()

    def abandon(self) -> None:
        """Close without waiting; what was not acknowledged may or may not be in the log."""
        self._sender.close()

    def _send_on(self) -> None:
        """Send what is due, and wait while too much is not acknowledged."""
        self.poll()
        while self._batches.buffered_bytes > self._settings.buffer_bytes:
            self._sender.work(ROUND_S)

    def _find(self, topic: str) -> TopicInfo:
        may_create = self._settings.may_create_topics
        return self._cluster.retry(lambda: self._cluster.topic(topic, may_create=may_create))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()
