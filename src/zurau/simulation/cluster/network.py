"""Messages between brokers: lost, doubled, late, out of order, cut off in one direction, or gone with a connection."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from zurau.simulation.cluster.swarm import Swarm

Schedule = Callable[[float, Callable[[], None]], None]
Pair = tuple[int, int]


class Network:
    def __init__(self, swarm: Swarm, chance: Random, schedule: Schedule) -> None:
        self.swarm = swarm
        self._chance = chance
        self._schedule = schedule
        #: Directed pairs that hear nothing, and by how many faults.
        self._cuts: dict[Pair, int] = {}
        #: How often the connection of a pair was reset.
        self._resets: dict[Pair, int] = {}
        self._day = 0

    def send(self, source: int, target: int, deliver: Callable[[], None]) -> None:
        """`deliver` is called once, twice or never."""
        swarm, chance = self.swarm, self._chance
        copies = 2 if swarm.duplication and chance.random() < swarm.duplication else 1
        pair = (source, target)
        connection = (self._resets.get(pair), self._day)
        for _ in range(copies):
            if swarm.loss and chance.random() < swarm.loss:
                continue
            delay_ms = 0.2 + chance.random() * swarm.delay_ms
            if swarm.straggling and chance.random() < swarm.straggling:
                delay_ms *= 10
            self._schedule(delay_ms, lambda: self._arrive(pair, connection, deliver))

    def cut(self, pair: Pair) -> None:
        self._cuts[pair] = self._cuts.get(pair, 0) + 1

    def is_cut(self, source: int, target: int) -> bool:
        return bool(self._cuts.get((source, target)))

    def mend(self, pair: Pair) -> None:
        self._cuts[pair] = max(0, self._cuts.get(pair, 0) - 1)

    def calm_down(self, swarm: Swarm) -> None:
        """A good day begins: nothing is cut, and what was under way is lost."""
        self.swarm = swarm
        self._cuts = {}
        self._day += 1

    def reset(self, pair: Pair) -> None:
        """Whatever is under way in this direction is lost."""
        self._resets[pair] = self._resets.get(pair, 0) + 1

    def _arrive(self, pair: Pair, connection: tuple[int | None, int], deliver: Callable[[], None]) -> None:
        if not self._cuts.get(pair) and (self._resets.get(pair), self._day) == connection:
            deliver()
