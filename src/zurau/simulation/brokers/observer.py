"""Sees every step of every replica core on one node, and what its sessions say: for checkers, and for transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zurau.ids import BrokerId
from zurau.replica.core.effects import Effect
from zurau.replica.core.events import Event, TimePassed
from zurau.replica.core.identity import PartitionId
from zurau.replica.core.replica import ReplicaCore
from zurau.replica.session.messages import SessionRequest, SessionResponse
from zurau.replica.session.sessions import Sessions
from zurau.simulation.brokers.words import effect_in_words, event_in_words
from zurau.simulation.searching import Violation

if TYPE_CHECKING:
    from zurau.simulation.brokers.node import SimulatedNode


class ReplicaObserver:
    """The port `Observer`. What is found here ends the run, and not the replica that did it."""

    def __init__(self, node: SimulatedNode) -> None:
        self._node = node
        self._cluster = node.cluster
        #: Replicas that were told something, until everything that they said to that is done.
        self.touched: dict[PartitionId, None] = {}

    def stepped(self, partition: PartitionId, replica: ReplicaCore, event: Event, effects: Sequence[Effect]) -> None:
        self.touched[partition] = None
        if self._cluster.trace.keeps_lines and (effects or not isinstance(event, TimePassed)):
            name = self._cluster.partition_name(partition)
            self._cluster.trace.aside(f"   {name} {replica.id} {event_in_words(event)}")
            for effect in effects:
                self._cluster.trace.aside(f"       {effect_in_words(effect)}")
        try:
            self._cluster.checks.stepped(partition, replica, event, effects)
        except Violation as violation:
            self._cluster.found(violation)

    def said(self, sessions: Sessions, to: BrokerId, it: SessionRequest | SessionResponse) -> None:
        try:
            self._cluster.checks.said(self._node, sessions, to, it)
        except Violation as violation:
            self._cluster.found(violation)

    def heard(self, sessions: Sessions, sender: BrokerId, it: SessionRequest | SessionResponse) -> None:
        try:
            self._cluster.checks.heard(self._node, sessions, sender, it)
        except Violation as violation:
            self._cluster.found(violation)
