"""Brokers whose connection has ended, as the controller is told of them.

A process that is killed closes its connections, and comes back no sooner than it can start; a machine that hangs closes
nothing. So a broker that is not connected is fenced earlier than one that is merely silent, and its partitions in mode
isr have another leader sooner. One that has only lost its connection dials again within a fraction of a second, and
says at once that it is alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zurau.ids import BrokerId
from zurau.machines.controller.commands import BrokerDisconnected
from zurau.machines.controller.image import ClusterImage
from zurau.partition.runtime import MachineRuntime
from zurau.pending import Pending


class Disconnections:
    def __init__(
        self,
        me: BrokerId,
        controller: MachineRuntime[Any],
        image: Callable[[], ClusterImage],
        heartbeat: Callable[[], None],
    ) -> None:
        self._controller = controller
        self._image = image
        self._heartbeat = heartbeat
        self._present = {me}
        controller.on_loaded = self._controller_loaded

    def connected(self, broker: BrokerId) -> None:
        self._present.add(broker)
        leader = self._controller.partition.leader
        if leader is not None and leader.broker == broker:
            self._heartbeat()

    def lost(self, broker: BrokerId) -> None:
        self._present.discard(broker)
        self._tell(broker)

    def _controller_loaded(self, loaded: Pending[None]) -> None:
        """Who decides from now on here has heard of nobody yet."""
        if loaded.error is None:
            for broker in self._image().brokers.keys() - self._present:
                self._tell(broker)

    def _tell(self, broker: BrokerId) -> None:
        if self._controller.is_loaded:
            self._controller.submit(BrokerDisconnected(broker))
