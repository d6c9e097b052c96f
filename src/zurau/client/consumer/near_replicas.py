"""Which partitions are read from a follower in one's own rack, because their leader has said so (KIP-392)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from zurau.ids import BrokerId, TopicPartition

#: After so long the leader is asked again, as after `metadata.max.age.ms` of Kafka's clients.
NAMED_FOR_S = 300.0


class NearReplicas:
    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        #: Each with when it is forgotten.
        self._named: dict[TopicPartition, tuple[BrokerId, float]] = {}

    def name(self, partition: TopicPartition, broker: BrokerId) -> None:
        self._named[partition] = (broker, self._now_s() + NAMED_FOR_S)

    def find(self, partition: TopicPartition) -> BrokerId | None:
        broker, until_s = self._named.get(partition, (None, 0.0))
        if broker is not None and self._now_s() >= until_s:
            del self._named[partition]
            return None
        return broker

    def forget(self, partitions: Iterable[TopicPartition]) -> bool:
        """The leader is asked again. Returns whether one of them was read from elsewhere."""
        forgotten = [self._named.pop(partition, None) for partition in partitions]
        return any(each is not None for each in forgotten)
