"""How long frames take, and who hears whom."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zurau.simulation.brokers.agenda import Agenda
    from zurau.simulation.brokers.node import SimulatedNode
    from zurau.simulation.brokers.swarm import Swarm

#: When a client notices at the latest that whom it talked to is no more.
NOTICE_MS_MAX = 1500


class Network:
    """Links between clients and brokers. A link that is stalled delivers afterwards, as TCP does."""

    def __init__(self, swarm: Swarm, agenda: Agenda) -> None:
        self._agenda = agenda
        self._chance = Random(f"network {swarm.seed}")
        self.delay_ms = float(swarm.delay_ms)
        self.straggling = swarm.straggling
        self._stalled_to: dict[int, float] = {}
        self._stalled_from: dict[int, float] = {}

    def to_broker_ms(self, node: SimulatedNode) -> float:
        return self._takes_ms(self._stalled_to.get(node.broker_id, 0))

    def to_client_ms(self, node: SimulatedNode) -> float:
        return self._takes_ms(self._stalled_from.get(node.broker_id, 0))

    def notice_ms(self) -> float:
        return self._chance.choice([0, self.delay_ms, NOTICE_MS_MAX]) * self._chance.random()

    def stall(self, node: SimulatedNode, duration_ms: float, *, inwards: bool, outwards: bool) -> None:
        until_ms = self._agenda.now_ms + duration_ms
        if inwards:
            self._stalled_to[node.broker_id] = until_ms
        if outwards:
            self._stalled_from[node.broker_id] = until_ms

    def calm_down(self) -> None:
        self._stalled_to.clear()
        self._stalled_from.clear()
        self.straggling = 0.0
        self.delay_ms = min(self.delay_ms, 5.0)

    def _takes_ms(self, stalled_until_ms: float) -> float:
        takes_ms = self._chance.random() * self.delay_ms
        if self.straggling and self._chance.random() < self.straggling:
            takes_ms *= 20
        return max(0.0, stalled_until_ms - self._agenda.now_ms) + takes_ms
