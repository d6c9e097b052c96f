"""Who leads is answered when it is decided, if that is only a moment away.

A client whose leader has died, or that has made a topic, asks at once who leads, mostly before anybody does. To be told
"nobody" costs it far more than the election takes: librdkafka asks again a second later, and to be told of the leader
that has just died costs it a connection that is refused, again and again. So for a moment after a broker was lost or
partitions were added an answer waits until the partitions that it names are led. The moment is counted from what
happened and not from the question: what stays without a leader holds up nobody for longer. If the controller died too,
it is counted from when the next one is elected.
"""

from __future__ import annotations

from collections.abc import Callable

from zurau.broker.waiting import until
from zurau.epochs import NO_EPOCH
from zurau.ids import Epoch, PartitionId
from zurau.ports import Clock
from zurau.replica.core.roles import Role

#: Elections take 100 to 300 ms after a process has died, and in mode isr up to 500. Not longer: clients that have no
#: answer after a second, as our own, leave this broker for another.
DECIDED_WITHIN_MS = 500
LOOK_EVERY_MS = 20


class Elections:
    def __init__(self, clock: Clock, metadata: PartitionId) -> None:
        self._clock = clock
        self._metadata = metadata
        self._metadata_epoch: Epoch = NO_EPOCH
        self._until_ms = 0.0

    def begin(self) -> None:
        """Something has happened after which partitions need a leader."""
        self._until_ms = self._clock.monotonic_ms() + DECIDED_WITHIN_MS

    def role_changed(self, partition: PartitionId, role: Role, epoch: Epoch) -> None:  # noqa: ARG002
        """Of a replica here."""
        if partition == self._metadata and epoch > self._metadata_epoch:
            self._metadata_epoch = epoch
            if self.are_under_way:
                self.begin()

    @property
    def are_under_way(self) -> bool:
        return self._clock.monotonic_ms() < self._until_ms

    async def decided(self, is_decided: Callable[[], bool]) -> None:
        """Return when it is, or when it takes too long."""
        while self.are_under_way and not is_decided():
            left_ms = self._until_ms - self._clock.monotonic_ms()
            await until(self._clock, is_decided, every_ms=LOOK_EVERY_MS, at_most_ms=left_ms)
