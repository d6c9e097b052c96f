"""What is known of each replica in a world, from its steps: kept apart from the replicas, and longer than they live.

A view holds what a core believes of its log when a step is over. That this is also so on the disk is checked elsewhere
(`FitsTheLog`, and every power failure); so checkers can ask a view what a replica has flushed, also while its broker is
down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from zurau.epochs import NO_EPOCH, EpochHistory, EpochMark, Position
from zurau.ids import Epoch, Offset
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.replica import ReplicaCore

NOWHERE = Position(NO_EPOCH, 0)


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """One replica, under one name."""

    #: The core of its last start.
    core: ReplicaCore | None = None
    marks: Sequence[EpochMark] = ()
    position: Position = NOWHERE
    flushed: Position = NOWHERE
    #: How much of its log it may be counted for.
    counted: Position = NOWHERE
    start_offset: Offset = 0

    @classmethod
    def of(cls, core: ReplicaCore) -> ReplicaView:
        log = core.log
        return cls(core, log.epochs.marks, log.position, log.flushed, core.stored, log.start_offset)

    def epoch_before(self, offset: Offset) -> Epoch:
        """Of the record before an offset; `NO_EPOCH` where the log has none there any more."""
        return epoch_before(self.marks, offset, self.start_offset)


def epoch_before(marks: Sequence[EpochMark], offset: Offset, start_offset: Offset) -> Epoch:
    return NO_EPOCH if offset <= start_offset else EpochHistory(marks).epoch_of(offset - 1)


@dataclass(slots=True)
class Truth:
    """What has been committed of one partition, once and for all."""

    end: Offset = 0
    #: For each high watermark that somebody has released, the epoch of the record before it. Two logs that agree there
    #: agree on everything before, or `LogsMatch` is broken.
    epochs: dict[Offset, Epoch] = field(default_factory=dict)
    replicas: dict[ReplicaId, ReplicaView] = field(default_factory=dict)

    def is_held(self, view: ReplicaView, upto: Position) -> bool:
        """Whether everything that is committed is below this position of a log."""
        if self.end <= view.start_offset:
            return upto.offset >= self.end
        known = self.epochs[self.end]
        return upto.offset >= self.end and known in (NO_EPOCH, view.epoch_before(self.end))


class Views:
    """Of all partitions of a world."""

    def __init__(self) -> None:
        self.partitions: dict[PartitionId, Truth] = {}

    def of(self, partition: PartitionId) -> Truth:
        known = self.partitions.get(partition)
        if known is None:
            known = self.partitions[partition] = Truth()
        return known
