"""One thing that must be true of replicas, and how it is told what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from zurau.replica.core.effects import Effect
from zurau.replica.core.events import Event
from zurau.replica.core.identity import PartitionId
from zurau.replica.core.replica import ReplicaCore
from zurau.simulation.brokers.checkers.views import ReplicaView, Truth
from zurau.simulation.searching import Violation

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster


class Step(NamedTuple):
    """Of one replica: its core has been told an event, and says effects that are not carried out yet."""

    partition: PartitionId
    core: ReplicaCore
    event: Event
    truth: Truth
    #: As it was before the step, and as it is after it.
    before: ReplicaView
    view: ReplicaView


class Checker:
    """Watches some kinds of effects and events; its docstring says what must be true."""

    watches: tuple[type, ...] = ()

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster

    def see(self, step: Step, it: Effect | Event) -> None:
        """One of the kinds that it watches."""
        raise NotImplementedError

    def require(self, holds: bool, seen: Callable[[], str]) -> None:
        if not holds:
            raise Violation(type(self).__name__, seen())

    def name(self, step: Step) -> str:
        return f"{self.cluster.partition_name(step.partition)} {step.core.id}"


def meaning(checker: type) -> str:
    """What must be true, in a sentence or two."""
    return " ".join((checker.__doc__ or "").split())
