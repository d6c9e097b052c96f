"""Records on their way out: gathered into one batch per partition until it is full or has waited long enough.

With a key, a record's partition is that of Java's default partitioner, so that records written from here and from
elsewhere meet. Without one, records begin at any partition, stay with it until its batch is closed and then move to
the next: that makes fewer and larger batches than dealing them out one by one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterator

from zurau.client.chance import chance
from zurau.client.errors import ClientError
from zurau.client.producer.sequences import Numbered
from zurau.ids import Offset, TopicPartition
from zurau.ports import Buffer
from zurau.records.builder import NewRecord, build_batch, build_packed_batch
from zurau.records.compression import Compression
from zurau.records.partitioner import partition_for_key

#: What a record costs beyond key, value and headers, about.
RECORD_OVERHEAD_BYTES = 16


class OutgoingBatch:
    """Records for one partition that are stored together or not at all."""

    __slots__ = ("base_offset", "created_s", "encoded", "error", "partition", "records", "size_bytes")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.records: list[NewRecord] = []
        self.size_bytes = 0
        self.created_s = time.monotonic()
        #: Made when it is first sent; a retry sends the same bytes, with the same sequence numbers.
        self.encoded: Buffer | None = None
        self.base_offset: Offset | None = None
        self.error: ClientError | None = None

    @property
    def record_count(self) -> int:
        return len(self.records)

    def encode(self, compression: Compression, numbered: Numbered) -> Buffer:
        """The batch as it is sent."""
        return build_batch(
            self.records,
            compression=compression,
            producer_id=numbered.producer_id,
            producer_epoch=numbered.producer_epoch,
            base_sequence=numbered.base_sequence,
        )

    def add(self, record: NewRecord) -> None:
        self.records.append(record)
        self.size_bytes += RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
        for name, value in record.headers:
            self.size_bytes += len(name) + len(value or b"") + 2


class PackedBatch(OutgoingBatch):
    """Records that somebody else has encoded, with offsets from 0 on and timestamps relative to the first."""

    __slots__ = ("_packed_count", "_payload", "_timestamps_ms")

    def __init__(
        self, partition: TopicPartition, payload: Buffer, record_count: int, timestamps_ms: tuple[int, int]
    ) -> None:
        super().__init__(partition)
        self._payload = payload
        self._packed_count = record_count
        self._timestamps_ms = timestamps_ms
        self.size_bytes = len(payload)

    @property
    def record_count(self) -> int:
        return self._packed_count

    def encode(self, compression: Compression, numbered: Numbered) -> Buffer:
        base_timestamp, max_timestamp = self._timestamps_ms
        return build_packed_batch(
            self._payload,
            self._packed_count,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            compression=compression,
            producer_id=numbered.producer_id,
            producer_epoch=numbered.producer_epoch,
            base_sequence=numbered.base_sequence,
        )


class Delivery:
    """What became of one record. Known once the producer was flushed."""

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: OutgoingBatch, index: int) -> None:
        self._batch = batch
        self._index = index

    @property
    def partition(self) -> TopicPartition:
        return self._batch.partition

    @property
    def offset(self) -> Offset | None:
        """None while it is not acknowledged; -1 when nobody was asked to acknowledge it (acks=0)."""
        base_offset = self._batch.base_offset
        return base_offset if base_offset is None or base_offset < 0 else base_offset + self._index

    @property
    def error(self) -> ClientError | None:
        return self._batch.error


class Accumulator:
    """Open batches, and closed ones that wait for their turn, in order within each partition."""

    def __init__(self, *, batch_bytes: int, linger_s: float) -> None:
        self._batch_bytes = batch_bytes
        self._linger_s = linger_s
        self._open: dict[TopicPartition, OutgoingBatch] = {}
        self._closed: dict[TopicPartition, deque[OutgoingBatch]] = {}
        self._sticky: dict[str, int] = {}
        self.buffered_bytes = 0

    def add(self, partition: TopicPartition, record: NewRecord) -> tuple[Delivery, bool]:
        """Add a record; the second value says whether a batch is due."""
        batch = self._open.get(partition)
        if batch is None:
            batch = self._open[partition] = OutgoingBatch(partition)
        before_bytes = batch.size_bytes
        batch.add(record)
        self.buffered_bytes += batch.size_bytes - before_bytes
        delivery = Delivery(batch, len(batch.records) - 1)
        if batch.size_bytes >= self._batch_bytes:
            self._close(batch)
            return delivery, True
        return delivery, time.monotonic() - batch.created_s >= self._linger_s

    def add_packed(self, batch: PackedBatch) -> None:
        """Add a batch that is complete, behind what its partition has so far."""
        earlier = self._open.get(batch.partition)
        if earlier is not None:
            self._close(earlier)
        self._closed.setdefault(batch.partition, deque()).append(batch)
        self.buffered_bytes += batch.size_bytes

    def choose_partition(self, topic: str, key: bytes | None, partition_count: int) -> TopicPartition:
        if key is not None:
            return TopicPartition(topic, partition_for_key(key, partition_count))
        if topic not in self._sticky:
            # Any will do, but not the same for every program: many write a record or two and end.
            self._sticky[topic] = chance.randrange(partition_count)
        return TopicPartition(topic, self._sticky[topic] % partition_count)

    @property
    def has_open(self) -> bool:
        """Whether a batch waits for more records."""
        return bool(self._open)

    @property
    def has_closed(self) -> bool:
        """Whether a batch waits for its turn."""
        return any(self._closed.values())

    def close_due(self, busy: Collection[TopicPartition] = ()) -> None:
        """Close the batches that waited long enough; not those of `busy` partitions, where another goes first."""
        now_s = time.monotonic()
        for batch in list(self._open.values()):
            if now_s - batch.created_s >= self._linger_s and batch.partition not in busy:
                self._close(batch)

    def close_all(self) -> None:
        for batch in list(self._open.values()):
            self._close(batch)

    def next_batches(self) -> Iterator[OutgoingBatch]:
        """The batch at the head of each partition's queue."""
        for queue in list(self._closed.values()):
            if queue:
                yield queue[0]

    def take(self, batch: OutgoingBatch) -> None:
        """The batch is on its way."""
        queue = self._closed[batch.partition]
        assert queue[0] is batch, "batches of a partition leave in order"
        queue.popleft()

    def put_back(self, batch: OutgoingBatch) -> None:
        """The batch has to go out again, before any other of its partition."""
        self._closed[batch.partition].appendleft(batch)

    def finished(self, batch: OutgoingBatch) -> None:
        self.buffered_bytes -= batch.size_bytes

    def _close(self, batch: OutgoingBatch) -> None:
        del self._open[batch.partition]
        self._closed.setdefault(batch.partition, deque()).append(batch)
        topic, index = batch.partition
        if self._sticky.get(topic) is not None:
            self._sticky[topic] = index + 1
