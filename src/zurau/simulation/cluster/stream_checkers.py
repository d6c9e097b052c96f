"""Invariants of the streams between brokers: what silence says, and how little is said when nothing happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zurau.ids import BrokerId
from zurau.replica.messages import Fetch
from zurau.replica.roles import Role
from zurau.replica.session import Answer, Question
from zurau.simulation.cluster.checkers import Violation

if TYPE_CHECKING:
    from zurau.simulation.cluster.machine import Machine
    from zurau.simulation.cluster.world import World


class StreamChecker:
    def __init__(self, world: World) -> None:
        self.world = world

    def see(self, machine: Machine, to: BrokerId, it: Question | Answer) -> None:
        """Something is about to be sent."""

    def idle(self) -> None:
        """Everything is whole: look what happens when nothing does."""

    def require(self, holds: bool, seen: Callable[[], str]) -> None:
        if not holds:
            raise Violation(type(self).__name__, seen())


class SilenceMeansUnchanged(StreamChecker):
    """Whoever a question does not name asks what it asked before, and whoever an answer does not name leads as before.

    What a session says for a replica that says nothing is looked up at that replica.
    """

    def see(self, machine: Machine, to: BrokerId, it: Question | Answer) -> None:
        named = {partition for partition, _ in it.said}
        peer = machine.streams.peers[to]
        if isinstance(it, Question):
            for partition, fetch in peer.asking.standing.items():
                if partition not in named:
                    host = machine.hosts.get(partition)
                    replica = host.replica if host is not None else None
                    asks = replica is not None and self._asks(replica, fetch)
                    self.require(asks, lambda fetch=fetch: f"{machine.broker} is silent and does not ask {fetch}")  # type: ignore[misc]
        elif not it.is_unknown:
            for partition, fetch in peer.answering.standing.items():
                if partition not in named:
                    host = machine.hosts.get(partition)
                    leads = host is not None and host.leads and host.replica is not None
                    same = leads and host is not None and host.replica is not None and host.replica.epoch == fetch.epoch
                    self.require(same, lambda fetch=fetch: f"{machine.broker} is silent and does not lead {fetch}")  # type: ignore[misc]

    @staticmethod
    def _asks(replica: object, fetch: Fetch) -> bool:
        return (
            replica.role in (Role.FOLLOWER, Role.PROSPECTIVE)  # type: ignore[attr-defined]
            and (replica.epoch, replica.stored, replica.high_watermark)  # type: ignore[attr-defined]
            == (fetch.epoch, fetch.position, fetch.high_watermark)
        )


STREAM_CHECKERS: tuple[type[StreamChecker], ...] = (SilenceMeansUnchanged,)
