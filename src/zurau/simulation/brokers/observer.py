"""Sees every step of every replica core in a world: for transcripts, which say what each was told and did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zurau.replica.core.effects import Effect
from zurau.replica.core.events import Event, TimePassed
from zurau.replica.core.identity import PartitionId
from zurau.replica.core.replica import ReplicaCore
from zurau.simulation.cluster.transcript import effect_in_words, event_in_words

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster


class ReplicaObserver:
    """The port `Observer`."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def stepped(self, partition: PartitionId, replica: ReplicaCore, event: Event, effects: Sequence[Effect]) -> None:
        if effects or not isinstance(event, TimePassed):
            name = self._cluster.partition_name(partition)
            self._cluster.trace.aside(f"   {name} {replica.id} {event_in_words(event)}")
            for effect in effects:
                self._cluster.trace.aside(f"       {effect_in_words(effect)}")
