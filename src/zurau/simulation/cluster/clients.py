"""Clients that write unique values, one after the other, and repeat each until it is acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from zurau.ids import BrokerId, Offset, TopicId

if TYPE_CHECKING:
    from zurau.simulation.cluster.world import World

_TIMEOUT_MS = 400


class Client:
    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._rng = Random(f"client {world.swarm.seed} {number}")
        self.number = number
        self.partition = number % world.swarm.partitions
        self._broker: BrokerId = world.broker_ids[0]
        self._count = 0
        self._attempt = 0
        self.value: bytes | None = None
        self._topic = TopicId(b"")
        #: Told to write no more.
        self.is_done = False

    def means(self, topic: TopicId) -> bool:
        """Whether it writes to this topic of the name: to the newest that it has heard of, never to an older one."""
        self._topic = max(self._topic, topic)
        return topic == self._topic

    def think(self) -> None:
        self._later(self._rng.random() * self._world.swarm.think_ms, self._write)

    def answered(self, value: bytes, offset: Offset | None, leader: BrokerId | None) -> None:
        if value != self.value:
            return  # an answer to an earlier attempt that came late
        if offset is not None:
            self.value = None
            self.think()
            return
        self._broker = leader if leader is not None else self._somebody()
        self._attempt += 1
        attempt = self._attempt
        self._later(20, lambda: self._try(attempt))

    def _write(self) -> None:
        if self.is_done:
            return
        self._count += 1
        self.value = f"{self.number}.{self._count}".encode()
        self._attempt += 1
        self._try(self._attempt)

    def _try(self, attempt: int) -> None:
        if attempt != self._attempt or self.value is None:
            return
        self._world.ask_write(self, self._broker, self.value)
        self._later(_TIMEOUT_MS, lambda: self._timed_out(attempt))

    def _timed_out(self, attempt: int) -> None:
        if attempt == self._attempt and self.value is not None:
            self._broker = self._somebody()
            self._attempt += 1
            self._try(self._attempt)

    def _somebody(self) -> BrokerId:
        return self._rng.choice(self._world.broker_ids)

    def _later(self, delay_ms: float, callback: Callable[[], None]) -> None:
        self._world.at(self._world.now_ms + delay_ms, callback)
