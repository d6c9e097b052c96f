"""Partitions in in-sync mode, between their replicas here and the controller.

A replica is told what the committed image says of its partition, and only when that image holds this start of the
broker: what was decided before does not know what the start may have lost. What a leader proposes goes to the
controller; the answer comes back with the image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from zurau.broker.forwarding import Forwarding
from zurau.ids import Epoch, PartitionId, TopicPartition
from zurau.machines.controller.commands import AlterPartition
from zurau.machines.controller.image import ClusterImage, PartitionImage, TopicImage
from zurau.partition.partition import Partition
from zurau.pending import Pending
from zurau.replica.core.events import BrokerRegistered, PartitionChanged
from zurau.replica.core.partition_state import InSyncProposal, PartitionState
from zurau.replica.in_sync.replica import InSyncReplica


class InSyncPartitions:
    def __init__(
        self,
        controller: Forwarding,
        partitions: Mapping[TopicPartition, Partition],
        image: Callable[[], ClusterImage],
    ) -> None:
        self._controller = controller
        self._partitions = partitions
        self._image = image
        #: Whether somebody else is to lead a partition, since there is room.
        self.yields: Callable[[PartitionId], bool] = lambda _: False
        #: Of this start of the broker, once the image holds it.
        self._broker_epoch: Epoch = -1

    def registered(self, broker_epoch: Epoch) -> None:
        """The image holds the registration of this start."""
        self._broker_epoch = broker_epoch
        for topic in self._image().topics.values():
            self.tell(topic, topic.partitions)

    def tell(self, topic: TopicImage, partitions: Iterable[PartitionImage]) -> None:
        """Tell replicas here what the image says of them."""
        if not topic.is_in_sync_mode or self._broker_epoch < 0:
            return
        for image in partitions:
            partition = self._partitions.get(TopicPartition(topic.name, image.index))
            if partition is not None and isinstance(partition.shell.core, InSyncReplica):
                partition.shell.tell(BrokerRegistered(self._broker_epoch))
                partition.shell.tell(PartitionChanged(_state_of(image), self._broker_epoch))

    def propose(self, key: PartitionId, proposal: InSyncProposal) -> None:
        """A leader here wants another in-sync set."""
        asked = AlterPartition(
            key,
            proposal.leader,
            proposal.leader_epoch,
            proposal.partition_epoch,
            proposal.in_sync,
            proposal.broker_epochs,
        )
        self._controller.submit(asked).then(lambda outcome: self._answered(key, outcome))

    def failed(self) -> frozenset[PartitionId]:
        """Replicas here that do not work, have no room, or led before a restart and have forgotten it."""
        return frozenset(self._failed())

    def _failed(self) -> Iterator[PartitionId]:
        for partition in self._partitions.values():
            core = partition.shell.core
            if isinstance(core, InSyncReplica):
                key = PartitionId(partition.topic_id, partition.name.partition)
                if partition.is_broken or core.led_before_restart or self.yields(key):
                    yield key

    def _answered(self, key: PartitionId, outcome: Pending[PartitionImage]) -> None:
        """Also when nothing was changed: then the leader's view was an old one. A refusal is asked about again."""
        topic = self._image().topics_by_id.get(key.topic_id)
        if outcome.error is None and topic is not None:
            self.tell(topic, [outcome.result()])


def _state_of(image: PartitionImage) -> PartitionState:
    return PartitionState(image.leader, image.leader_epoch, tuple(sorted(image.in_sync)), image.partition_epoch)
