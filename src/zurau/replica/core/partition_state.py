"""What a controller knows of a partition whose replicas it leads, and what a leader asks it to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from zurau.ids import BrokerId, Epoch
from zurau.replica.core.identity import ReplicaId


class PartitionState(msgspec.Struct, frozen=True):
    leader: ReplicaId | None
    #: Counts leaders.
    leader_epoch: Epoch
    #: In order of their names. Never empty: the last one stays, dead or alive, because it may be the last to know.
    in_sync: tuple[ReplicaId, ...]
    #: Counts changes of any of these; a proposal for an older state is refused.
    partition_epoch: Epoch


class InSyncProposal(msgspec.Struct, frozen=True):
    """A leader's wish, for one state of the partition and for brokers as they were started then."""

    leader: ReplicaId
    leader_epoch: Epoch
    partition_epoch: Epoch
    in_sync: tuple[ReplicaId, ...]
    #: One for each of the above. A broker that has been restarted since is not the one that was caught up.
    broker_epochs: tuple[Epoch, ...]


def choose_leader(able: Sequence[ReplicaId], led: Mapping[BrokerId, int]) -> ReplicaId | None:
    """Of the in-sync replicas that can lead, the one whose broker leads the fewest partitions: a broker that fails
    takes as few leaders with it as can be, and those that take over are many."""
    return min(able, key=lambda replica: (led.get(replica.broker, 0), replica), default=None)
