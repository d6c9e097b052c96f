"""This broker's stock of producer ids: a block at a time from the controller, one at a time to producers."""

from __future__ import annotations

from zurau.broker.forwarding import Forwarding
from zurau.ids import ProducerId
from zurau.machines.controller.commands import AllocateProducerIds
from zurau.pending import Pending, start

BLOCK_IDS = 1000


class ProducerIds:
    """Those who come while a block is on its way share it. Invariant: an id leaves `_stock` once."""

    def __init__(self, controller: Forwarding) -> None:
        self._controller = controller
        self._stock = range(0)
        self._delivery: Pending[None] | None = None

    async def next(self) -> ProducerId:
        """An id that no producer has had. Raises `Refused` when the controller could not write."""
        while not self._stock:
            if self._delivery is None or self._delivery.is_done:
                self._delivery = start(self._restock())
            await self._delivery
        first, self._stock = self._stock[0], self._stock[1:]
        return first

    async def _restock(self) -> None:
        self._stock = range(*await self._controller.ask(AllocateProducerIds(BLOCK_IDS)))
