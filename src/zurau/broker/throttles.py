"""Replicas that are catching up take no more of the network than operators allow.

As in Kafka: `leader.replication.throttled.rate` bounds what a broker sends, `follower.replication.throttled.rate` what
it takes, for replicas that a topic names in `leader.` and `follower.replication.throttled.replicas`; and of those only
for replicas that nothing waits for: learners, or who is not in sync. `kafka-reassign-partitions --throttle` sets all
four.

What is held back is not kept: its follower asks again in half a second, and meanwhile hears that its leader is alive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from zurau.ids import BrokerId, PartitionId
from zurau.machines.controller.dynamic import (
    ALL_REPLICAS,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from zurau.machines.controller.image import ALL_BROKERS, ClusterImage
from zurau.ports import Clock
from zurau.settings import SECOND_MS


class Throttle:
    """A rate, and what may be moved now: up to a second's worth when nothing was for a while."""

    def __init__(self, clock: Clock, rate_name: str, replicas_name: str) -> None:
        self._clock = clock
        self._rate_name = rate_name
        self._replicas_name = replicas_name
        #: Bytes a second; None: any number.
        self.rate: int | None = None
        self._bytes = 0.0
        self._at_ms = 0.0

    def is_exhausted(self) -> bool:
        if self.rate is None:
            return False
        now_ms = self._clock.monotonic_ms()
        self._bytes = min(self.rate, self._bytes + self.rate * (now_ms - self._at_ms) / SECOND_MS)
        self._at_ms = now_ms
        return self._bytes <= 0

    def take(self, count: int) -> None:
        """They are moved whole, and what was too much is waited for before the next."""
        self._bytes -= count

    def follow(self, own: Mapping[str, str], everybodys: Mapping[str, str]) -> None:
        text = own.get(self._rate_name, everybodys.get(self._rate_name))
        rate = None if text is None else int(text)
        if rate != self.rate:
            self.rate, self._bytes, self._at_ms = rate, float(rate or 0), self._clock.monotonic_ms()

    def names(self, configs: Mapping[str, str], index: int, broker: BrokerId) -> bool:
        replicas = configs.get(self._replicas_name, "")
        return replicas == ALL_REPLICAS or f"{index}:{broker}" in replicas.split(",")


class Throttles:
    """Of one broker."""

    def __init__(self, broker_id: BrokerId, clock: Clock, image: Callable[[], ClusterImage]) -> None:
        self._broker_id = broker_id
        self._image = image
        self._epoch = -1
        self._as_leader = Throttle(clock, LEADER_RATE, LEADER_REPLICAS)
        self._as_follower = Throttle(clock, FOLLOWER_RATE, FOLLOWER_REPLICAS)

    def as_leader(self, partition: PartitionId) -> Throttle | None:
        """What bounds the sending of this partition to replicas that catch up, if anything does."""
        return self._of(partition, self._as_leader)

    def as_follower(self, partition: PartitionId) -> Throttle | None:
        return self._of(partition, self._as_follower)

    def _of(self, partition: PartitionId, throttle: Throttle) -> Throttle | None:
        image = self._image()
        if image.epoch != self._epoch:
            self._epoch = image.epoch
            own, everybodys = (image.broker_configs.get(each, {}) for each in (str(self._broker_id), ALL_BROKERS))
            self._as_leader.follow(own, everybodys)
            self._as_follower.follow(own, everybodys)
        if throttle.rate is None:
            return None
        topic = image.topics_by_id.get(partition.topic_id)
        is_named = topic is not None and throttle.names(topic.configs, partition.partition, self._broker_id)
        return throttle if is_named else None
