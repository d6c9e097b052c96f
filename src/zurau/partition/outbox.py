"""What a replica's shell asks of the broker: to tell other brokers, and the controller."""

from __future__ import annotations

from typing import Protocol

from zurau.ids import BrokerId, Epoch
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.messages import Fetched, Message, SnapshotPoint
from zurau.replica.core.partition_state import InSyncProposal
from zurau.replica.core.roles import Role


class Outbox(Protocol):
    def send(self, to: BrokerId, partition: PartitionId, message: Message) -> None: ...

    def holds_back(self, to: BrokerId, partition: PartitionId, answer: Fetched) -> bool:
        """Whether records are not to be read for this answer: the follower asks again later."""

    def evict(self, partition: PartitionId, broker: BrokerId) -> None:
        """What a replica there asked cannot be answered: it has to ask anew."""

    def role_changed(self, partition: PartitionId, role: Role, epoch: Epoch) -> None: ...

    def failed(self, partition: PartitionId) -> None:
        """The replica here neither asks nor answers any more."""

    def cannot_write(self, partition: PartitionId) -> None:
        """The disk here has no room for more of it at present."""

    def fetch_snapshot(self, partition: PartitionId, leader: ReplicaId, point: SnapshotPoint) -> None: ...

    def alter_partition(self, partition: PartitionId, proposal: InSyncProposal) -> None: ...


class Alone:
    """The outbox of a broker that has no others: there is nobody to tell."""

    def send(self, to: BrokerId, partition: PartitionId, message: Message) -> None: ...

    def holds_back(self, to: BrokerId, partition: PartitionId, answer: Fetched) -> bool:  # noqa: ARG002 - nobody asks
        return False

    def evict(self, partition: PartitionId, broker: BrokerId) -> None: ...

    def role_changed(self, partition: PartitionId, role: Role, epoch: Epoch) -> None: ...

    def failed(self, partition: PartitionId) -> None: ...

    def cannot_write(self, partition: PartitionId) -> None: ...

    def fetch_snapshot(self, partition: PartitionId, leader: ReplicaId, point: SnapshotPoint) -> None: ...

    def alter_partition(self, partition: PartitionId, proposal: InSyncProposal) -> None: ...
