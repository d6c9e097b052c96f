"""Passes what replicas and sessions do on to everybody who checks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zurau.ids import BrokerId, Offset
from zurau.replica.core.effects import Effect
from zurau.replica.core.events import Event
from zurau.replica.core.identity import PartitionId
from zurau.replica.core.replica import ReplicaCore
from zurau.replica.session.messages import SessionRequest
from zurau.replica.session.sessions import Sessions
from zurau.simulation.brokers.checkers.checker import Checker, Step, meaning
from zurau.simulation.brokers.checkers.leaders import LEADER_CHECKERS
from zurau.simulation.brokers.checkers.logs import LOG_CHECKERS, WhatWasFlushedIsThere
from zurau.simulation.brokers.checkers.sessions import SESSION_CHECKERS, Said
from zurau.simulation.brokers.checkers.views import ReplicaView, Truth
from zurau.simulation.brokers.checkers.worlds import WORLD_CHECKERS, IdleBrokersSayLittle

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster
    from zurau.simulation.brokers.node import SimulatedNode

REPLICA_CHECKERS = (*LOG_CHECKERS, *LEADER_CHECKERS)
#: What each says that must be true.
MEANINGS = {each.__name__: meaning(each) for each in (*REPLICA_CHECKERS, *SESSION_CHECKERS, *WORLD_CHECKERS)}
_NOTHING_YET = ReplicaView()


class Checks:
    """Of one world. Raise `Violation`."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._truths: dict[PartitionId, Truth] = {}
        checkers = [each(cluster) for each in REPLICA_CHECKERS]
        self._starts = next(each for each in checkers if isinstance(each, WhatWasFlushedIsThere))
        self._by_kind: dict[type, list[Checker]] = {}
        for checker in checkers:
            for kind in checker.watches:
                self._by_kind.setdefault(kind, []).append(checker)
        self._sessions = [each() for each in SESSION_CHECKERS]
        self._world = [each(cluster) for each in WORLD_CHECKERS]
        self.idle = next(each for each in self._world if isinstance(each, IdleBrokersSayLittle))

    def stepped(self, partition: PartitionId, core: ReplicaCore, event: Event, effects: Sequence[Effect]) -> None:
        truth = self._truths.get(partition)
        if truth is None:
            truth = self._truths[partition] = Truth()
        before = truth.replicas.get(core.id, _NOTHING_YET)
        view = truth.replicas[core.id] = ReplicaView.of(core)
        step = Step(partition, core, event, truth, before, view)
        if before.core is not core:
            self._starts.began(step)
        for it in (event, *effects):
            for checker in self._by_kind.get(type(it), ()):
                checker.see(step, it)

    def look(self) -> None:
        for checker in self._world:
            checker.look()

    def committed_upto(self, partition: PartitionId, copies: int) -> Offset:
        """What some replica has released; and so many have stored, if that is more than one."""
        truth = self._truths[partition]
        stored = sorted((view.counted.offset for view in truth.replicas.values()), reverse=True)
        return truth.end if copies == 1 else min([truth.end, *stored[copies - 1 : copies]])

    def said(self, node: SimulatedNode, sessions: Sessions, to: BrokerId, it: Said) -> None:
        broker = node.watched
        if isinstance(it, SessionRequest):
            self.idle.asked(node, to)
        if broker is not None:
            for checker in self._sessions:
                checker.said(node, broker, sessions, to, it)

    def heard(self, node: SimulatedNode, sessions: Sessions, sender: BrokerId, it: Said) -> None:
        broker = node.watched
        if broker is not None:
            for checker in self._sessions:
                checker.heard(node, broker, sessions, sender, it)
