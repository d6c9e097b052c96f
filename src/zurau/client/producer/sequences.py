"""The numbers that let a broker see a batch it already has: a producer id, and a sequence per partition (KIP-98)."""

from __future__ import annotations

from typing import NamedTuple

from zurau.client.cluster.cluster import Cluster
from zurau.client.errors import check
from zurau.ids import NO_PRODUCER_ID, ProducerId, TopicPartition
from zurau.settings import INT32_MAX
from zurau.wire.kafka.messages.init_producer_id import InitProducerIdRequest


class Numbered(NamedTuple):
    producer_id: ProducerId
    producer_epoch: int
    base_sequence: int


UNNUMBERED = Numbered(NO_PRODUCER_ID, -1, -1)


class Sequences:
    """Counts on from batch to batch. After records were given up on, everything starts anew under another id."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._producer_id: ProducerId = NO_PRODUCER_ID
        self._epoch = -1
        self._next: dict[TopicPartition, int] = {}

    def next_for(self, partition: TopicPartition, record_count: int) -> Numbered:
        if self._producer_id == NO_PRODUCER_ID:
            self._cluster.retry(self._acquire)
        base_sequence = self._next.get(partition, 0)
        self._next[partition] = (base_sequence + record_count) % (INT32_MAX + 1)
        return Numbered(self._producer_id, self._epoch, base_sequence)

    def reset(self) -> None:
        """A gap in the sequence would be refused; a new id has none."""
        self._producer_id = NO_PRODUCER_ID
        self._next.clear()

    def _acquire(self) -> None:
        answer = self._cluster.ask_any(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=INT32_MAX))
        check(answer.error_code, "asking for a producer id")
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
