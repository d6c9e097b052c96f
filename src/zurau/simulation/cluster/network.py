"""Messages between brokers: lost, doubled, late, out of order, cut off in one direction, or gone with a connection."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

from zurau.simulation.cluster.swarm import Swarm

Pair = tuple[int, int]


class Agenda(Protocol):
    now_ms: float

    def at(self, at_ms: float, act: Callable[[], None]) -> None: ...


class Network:
    def __init__(self, swarm: Swarm, chance: Random, agenda: Agenda) -> None:
        self.swarm = swarm
        self._chance = chance
        self._agenda = agenda
        #: Directed pairs that hear nothing, and by how many faults.
        self._cuts: dict[Pair, int] = {}
        #: How often the connection of a pair was reset.
        self._resets: dict[Pair, int] = {}
        #: When the last message of a pair arrives: where order is kept, none overtakes it.
        self._latest_ms: dict[Pair, float] = {}
        self._day = 0

    def send(self, source: int, target: int, deliver: Callable[[], None], *, takes_ms: float = 0) -> None:
        """`deliver` is called once, twice or never; all of it has arrived so long after its beginning."""
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
            at_ms = self._agenda.now_ms + delay_ms + takes_ms
            if swarm.keeps_order:
                at_ms = self._latest_ms[pair] = max(at_ms, self._latest_ms.get(pair, 0.0))
            self._agenda.at(at_ms, lambda: self._arrive(pair, connection, deliver))

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
        self._latest_ms = {}
        self._day += 1

    def reset(self, pair: Pair) -> None:
        """Whatever is under way in this direction is lost."""
        self._resets[pair] = self._resets.get(pair, 0) + 1
        self._latest_ms.pop(pair, None)

    def _arrive(self, pair: Pair, connection: tuple[int | None, int], deliver: Callable[[], None]) -> None:
        if not self._cuts.get(pair) and (self._resets.get(pair), self._day) == connection:
            deliver()
