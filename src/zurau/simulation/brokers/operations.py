"""What operators do to a cluster while everything else goes wrong: partitions and leaders are
moved, brokers come, are drained, and go.

Drawn beforehand like faults, and shortened with them.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

from zurau.simulation.brokers.faults import PeerFault

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster
    from zurau.simulation.brokers.node import SimulatedNode

#: How many brokers may come.
JOINING_MAX = 2


class Move(PeerFault):
    """A partition is moved to other brokers, more or fewer."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        operator = cluster.operator
        operator.asked(partial(operator.move, Random(self.number)))


class CancelMoves(PeerFault):
    """What is on its way stays where it was."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        cluster.operator.asked(cluster.operator.cancel)


class ElectPreferred(PeerFault):
    """Leaders shall be the first replicas."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        cluster.operator.asked(cluster.operator.elect)


class Drain(PeerFault):
    """It shall lead nothing for a while."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        operator = cluster.operator
        operator.asked(partial(operator.drain, node.broker_id))
        self._until_over(cluster, lambda: operator.asked(partial(operator.undrain, node.broker_id)))


class HandOver(PeerFault):
    """It hands over what it leads, stops in good order and is started again."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        node.hand_over(lambda: cluster.agenda.after(self.duration_ms, node.start))


class Join(PeerFault):
    """One more broker, on an empty disk."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        if len(cluster.nodes) < cluster.swarm.brokers + JOINING_MAX:
            cluster.add_node()


class Decommission(PeerFault):
    """It holds nothing more, is forgotten by the others, and taken away with its disk. Once in a history."""

    def strike(self, cluster: SimulatedCluster, node: SimulatedNode) -> None:
        cluster.operator.asked(partial(cluster.operator.begin_decommission, node))


OPERATIONS: dict[str, type[PeerFault]] = {
    kind.__name__: kind for kind in (Move, CancelMoves, ElectPreferred, Drain, HandOver, Join, Decommission)
}
