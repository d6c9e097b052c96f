"""The controller hears what a replica here is called, whenever that is not what the image says.

A replica that has lost something begins anew under another name, at the start of its broker or whenever its files are
opened; and an image that came as a snapshot may call a replica anew that was moved away and back meanwhile. What the
controller does not know by its name is never in sync and never votes, so it is told until the image says the same. The
broker's word counts and not the image's: a name that has lost something must not be used again.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from zurau.broker.outcomes import report
from zurau.broker.placement import Placement
from zurau.errors import Refused
from zurau.ids import BrokerId, Epoch, PartitionId, TopicId
from zurau.machines.controller.commands import RenameReplica
from zurau.machines.controller.image import PartitionImage, TopicImage
from zurau.pending import Pending, done, start

log = logging.getLogger("zurau.placement")


class ReplicaNames:
    def __init__(
        self,
        broker_id: BrokerId,
        placement: Placement,
        present: Callable[[TopicId], TopicImage | None],
        ask: Callable[[RenameReplica], Awaitable[None]],
    ) -> None:
        """`present`: a topic as it is now. `ask`: the controller, until there is one."""
        self._broker_id = broker_id
        self._placement = placement
        self._present = present
        self._ask = ask
        self._broker_epoch: Epoch = -1
        #: Partitions to be told of, each once.
        self._due: dict[PartitionId, None] = {}
        #: Done when the controller knows them all.
        self.told: Pending[None] = done(None)

    def registered(self, broker_epoch: Epoch) -> None:
        """The image holds the registration of this start: until then names may be those of a directory that is lost."""
        self._broker_epoch = broker_epoch

    def compare(self, topic: TopicImage, partitions: Iterable[PartitionImage]) -> None:
        """See whether the image calls replicas by the names that they have here."""
        if self._broker_epoch < 0:
            return
        for image in partitions:
            if self._placement.other_name(topic, image):
                self._due[PartitionId(topic.topic_id, image.index)] = None
        if self._due and self.told.is_done:
            self.told = told = Pending[None]()  # first: what is answered at once changes the image at once
            start(self._tell()).then(partial(_pass_on, told))

    async def _tell(self) -> None:
        """One after the other. When the answer is there, the image holds it."""
        while self._due:
            key = next(iter(self._due))
            del self._due[key]
            topic = self._present(key.topic_id)
            name = self._placement.other_name(topic, topic.partitions[key.partition]) if topic is not None else ""
            if name:
                try:
                    await self._ask(RenameReplica(self._broker_id, self._broker_epoch, key, name))
                except Refused as refused:  # it was moved away, say; or this broker stops, or was started again
                    log.info("the new name of a replica was not taken: %s", refused)


def _pass_on(told: Pending[None], outcome: Pending[None]) -> None:
    if outcome.error is None:
        told.resolve(None)
    else:
        report("a replica may go on under a name that nobody counts", outcome.error)
        told.fail(outcome.error)
