"""Sees to it that those vote who should: for each partition that is led here, one change after the other.

On the metadata some of the brokers vote (`metadata_voters.py`), on other partitions the replicas that the image names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from zurau.broker.metadata_voters import MetadataVoters
from zurau.broker.waiting import pause
from zurau.ids import PartitionId, TopicPartition
from zurau.machines.controller.commands import FinishReassignment
from zurau.machines.controller.image import ClusterImage, PartitionImage
from zurau.partition.partition import Partition
from zurau.pending import Pending, start
from zurau.ports import Timer, World
from zurau.replica.core.events import VoterChangeAsked
from zurau.replica.core.membership import Voters, next_change
from zurau.replica.quorum.replica import Replica

log = logging.getLogger("zurau.broker")

#: How often it is looked whether somebody is to be added or removed.
INTERVAL_MS = 500
#: A broker that starts waits so long for those to vote who should: a cluster that says it is ready bears a failure.
SETTLED_WITHIN_MS = 10_000
#: A leader whose disk has less room does not change its voters: a change that is decided has to be written.
ROOM_BYTES = 1 << 20


class VoterChanges:
    def __init__(
        self,
        metadata: Partition,
        partitions: Mapping[TopicPartition, Partition],
        image: Callable[[], ClusterImage],
        submit: Callable[[FinishReassignment], Pending[None]],
        world: World,
        replace_voters_after_ms: int,
    ) -> None:
        self._metadata = metadata
        self._partitions = partitions
        self._image = image
        self._submit = submit
        self._metadata_voters_of = MetadataVoters(replace_voters_after_ms)
        self._clock = world.clock
        self._disk = world.disk
        self._turns = world.turns
        self._timer: Timer | None = None
        self._is_closed = False

    def begin(self) -> None:
        start(self._look_at_all())

    async def _look_at_all(self) -> None:
        """In turns: there may be thousands of partitions, and mostly nothing is to be done."""
        self._look(self._metadata, self._metadata_voters())
        for partition in list(self._partitions.values()):
            if self._turns.is_over():
                await self._turns.next()
            if self._is_closed:
                return
            if partition is not self._metadata and partition.leads:
                found = self._image().partition(PartitionId(partition.topic_id, partition.name.partition))
                if found is not None:
                    self._look(partition, tuple(sorted(found.wanted_ids)))
                    self._finish(partition, found)
        self._timer = self._clock.call_later(INTERVAL_MS, self.begin)

    async def settled(self) -> None:
        """Done when those vote on the metadata who should, as far as this broker knows, or it takes too long."""
        until_ms = self._clock.monotonic_ms() + SETTLED_WITHIN_MS
        while self._metadata.shell.core.membership.voters != self._metadata_voters():
            if self._is_closed:
                return
            if self._clock.monotonic_ms() >= until_ms:
                log.warning("not all vote on the metadata that should; until they do, the cluster bears fewer failures")
                return
            await pause(self._clock, INTERVAL_MS // 10)

    def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _metadata_voters(self) -> Voters:
        core = self._metadata.shell.core
        assert isinstance(core, Replica), "the metadata log is always led by votes"
        return self._metadata_voters_of.wanted(core.id, core.voters, self._image(), self._clock.monotonic_ms())

    def _finish(self, partition: Partition, image: PartitionImage) -> None:
        """Say so when those vote that shall have the partition. If it is not heard, it is said again."""
        core = partition.shell.core
        if image.target and partition.is_established and isinstance(core, Replica):
            is_committed = core.membership.is_settled(core.high_watermark)
            if is_committed and sorted(core.voters) == sorted(image.wanted_ids):
                key = PartitionId(partition.topic_id, image.index)
                self._submit(FinishReassignment(key, image.partition_epoch, core.voters))

    def _look(self, partition: Partition, wanted: Voters) -> None:
        core = partition.shell.core
        if not partition.is_established or not isinstance(core, Replica) or not wanted or core.voters == wanted:
            return
        change = next_change(core.voters, wanted, core.is_caught_up)
        if change is not None and self._disk.free_bytes() >= ROOM_BYTES:
            partition.shell.tell(VoterChangeAsked(*change))
