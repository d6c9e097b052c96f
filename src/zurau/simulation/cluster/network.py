"""Messages between brokers: lost, doubled, late, out of order, or cut off in one direction."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from zurau.simulation.cluster.swarm import Swarm

Schedule = Callable[[float, Callable[[], None]], None]


class Network:
    def __init__(self, swarm: Swarm, chance: Random, schedule: Schedule) -> None:
        self.swarm = swarm
        self._chance = chance
        self._schedule = schedule
        #: Directed pairs that hear nothing, and by how many faults.
        self._cuts: dict[tuple[int, int], int] = {}

    def send(self, source: int, target: int, deliver: Callable[[], None]) -> None:
        """`deliver` is called once, twice or never."""
        swarm, chance = self.swarm, self._chance
        copies = 2 if swarm.duplication and chance.random() < swarm.duplication else 1
        for _ in range(copies):
            if swarm.loss and chance.random() < swarm.loss:
                continue
            delay_ms = 0.2 + chance.random() * swarm.delay_ms
            if swarm.straggling and chance.random() < swarm.straggling:
                delay_ms *= 10
            self._schedule(delay_ms, lambda: self._arrive(source, target, deliver))

    def cut(self, pair: tuple[int, int]) -> None:
        self._cuts[pair] = self._cuts.get(pair, 0) + 1

    def is_cut(self, source: int, target: int) -> bool:
        return bool(self._cuts.get((source, target)))

    def mend(self, pair: tuple[int, int]) -> None:
        self._cuts[pair] = max(0, self._cuts.get(pair, 0) - 1)

    def mend_all(self) -> None:
        self._cuts = {}

    def _arrive(self, source: int, target: int, deliver: Callable[[], None]) -> None:
        if not self.is_cut(source, target):
            deliver()
