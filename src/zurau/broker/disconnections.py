"""Brokers whose connection has ended, as the controller is told of them; and that it is told at once who is there.

A process that is killed closes its connections, and comes back no sooner than it can start; a machine that hangs closes
nothing. So a broker that is not connected is fenced earlier than one that is merely silent, and its partitions in mode
isr have another leader sooner. One that has only lost its connection dials again within a fraction of a second, and
says at once that it is alive.

A new controller knows nobody's replicas until it hears of them, and chooses no leader before. So every broker speaks up
as soon as it knows who the controller is, and not with its next heartbeat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zurau.ids import BrokerId, Epoch, PartitionId
from zurau.machines.controller.commands import BrokerDisconnected
from zurau.machines.controller.image import ClusterImage
from zurau.partition.runtime import MachineRuntime
from zurau.ports import Clock
from zurau.replica.core.roles import Role


class Disconnections:
    def __init__(
        self,
        me: BrokerId,
        controller: MachineRuntime[Any],
        image: Callable[[], ClusterImage],
        heartbeat: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._controller = controller
        self._image = image
        self._heartbeat = heartbeat
        self._clock = clock
        self._present = {me}
        #: When the connections that are gone were lost.
        self._lost_ms: dict[BrokerId, float] = {}

    def connected(self, broker: BrokerId) -> None:
        self._present.add(broker)
        self._lost_ms.pop(broker, None)
        leader = self._controller.partition.leader
        if leader is not None and leader.broker == broker:
            self._heartbeat()

    def lost(self, broker: BrokerId) -> None:
        self._present.discard(broker)
        self._lost_ms[broker] = self._clock.monotonic_ms()
        self._tell(broker)

    def is_lost(self, broker: BrokerId) -> bool:
        """There was a connection with it, and there is none now."""
        return broker in self._lost_ms

    def role_changed(self, partition: PartitionId, role: Role, epoch: Epoch) -> None:  # noqa: ARG002
        """Of a replica here."""
        metadata = self._controller.partition
        if partition == PartitionId(metadata.topic_id, metadata.name.partition) and role is Role.FOLLOWER:
            self._clock.call_later(0, self._speak_up)

    def controller_loaded(self) -> None:
        """Who decides from now on here has heard of nobody yet, not even of its own broker."""
        self._heartbeat()
        for broker in self._image().brokers.keys() - self._present:
            self._tell(broker)

    def _speak_up(self) -> None:
        if self._controller.partition.leader is not None:
            self._heartbeat()

    def _tell(self, broker: BrokerId) -> None:
        if self._controller.is_loaded:
            now_ms = self._clock.monotonic_ms()
            self._controller.submit(BrokerDisconnected(broker, int(now_ms - self._lost_ms.get(broker, now_ms))))
