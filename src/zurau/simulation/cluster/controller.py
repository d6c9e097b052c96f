"""A model of the controller, for one partition: who is alive, who leads, who is in sync.

It never fails here: the metadata has a quorum of its own, which is the other mode's business. What is said between it
and the brokers is lost, doubled and late like everything else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zurau.ids import BrokerId, Epoch
from zurau.replica.identity import ReplicaId
from zurau.replica.partition_state import InSyncProposal, PartitionState

if TYPE_CHECKING:
    from zurau.simulation.cluster.in_sync_cluster import InSyncCluster

SESSION_MS = 500


@dataclass(slots=True)
class Registration:
    replica: ReplicaId
    life: int
    broker_epoch: Epoch
    heard_ms: float
    is_fenced: bool = False


class Controller:
    def __init__(self, cluster: InSyncCluster, replicas: tuple[ReplicaId, ...]) -> None:
        self._cluster = cluster
        self._registrations: dict[BrokerId, Registration] = {}
        self._broker_epochs = 0
        self.partition = PartitionState(None, 0, replicas, 0)
        #: Replicas that left the in-sync set without having lost anything, the latest last (KIP-966 has the like).
        self.eligible: list[ReplicaId] = []

    def is_old_copy(self, replica: ReplicaId, life: int, starts: tuple[int, ...]) -> bool:
        """A directory that does not remember its last start: somebody has put back how it was before."""
        known = self._registrations.get(replica.broker)
        return known is not None and known.replica == replica and life > known.life and known.life not in starts

    def heard(self, replica: ReplicaId, life: int, *, was_clean: bool) -> Epoch | None:
        """A broker is alive. Returns the number of its start; None when a later start is known."""
        known = self._registrations.get(replica.broker)
        if known is not None and life < known.life:
            return None
        if known is None or life > known.life:
            self._register(replica, life, was_clean=was_clean)
        registration = self._registrations[replica.broker]
        registration.heard_ms = self._cluster.now_ms
        registration.is_fenced = False
        self._elect_if_needed()
        return registration.broker_epoch

    def look(self) -> None:
        """Fence whoever has not been heard of."""
        for registration in self._registrations.values():
            if not registration.is_fenced and self._cluster.now_ms - registration.heard_ms > SESSION_MS:
                registration.is_fenced = True
                self._leave(registration.replica)
        self._elect_if_needed()

    def propose(self, proposal: InSyncProposal) -> None:
        """A leader wants another in-sync set. What was refused must not be accepted later, when it comes a second
        time: so a refusal counts as a change."""
        known = self.partition
        asked = (proposal.leader, proposal.leader_epoch, proposal.partition_epoch)
        if asked != (known.leader, known.leader_epoch, known.partition_epoch):
            return
        joining = zip(proposal.in_sync, proposal.broker_epochs, strict=True)
        if all(replica in known.in_sync or self._may_join(replica, epoch) for replica, epoch in joining):
            self._change(in_sync=proposal.in_sync)
        else:
            self._change(in_sync=known.in_sync)

    def is_alive(self, replica: ReplicaId) -> bool:
        known = self._registrations.get(replica.broker)
        return known is not None and known.replica == replica and not known.is_fenced

    def _register(self, replica: ReplicaId, life: int, *, was_clean: bool) -> None:
        self._broker_epochs += 1
        self._registrations[replica.broker] = Registration(replica, life, self._broker_epochs, self._cluster.now_ms)
        for each in (*self.partition.in_sync, *self.eligible):
            if each.broker == replica.broker and each != replica:
                self._forget(each)  # its disk is gone
        if not was_clean and not self._cluster.swarm.settings.waits_for_flush:
            # It may have lost what it was counted for, unless that was flushed; let it catch up first.
            self._forget(replica)
        if self.partition.leader is not None and self.partition.leader.broker == replica.broker:
            self._change(leader=None)  # it has lost its reign with its memory
        self._cluster.registered(replica, life)

    def _leave(self, replica: ReplicaId) -> None:
        """Not in sync any more, unless it is the last; and not the leader."""
        known = self.partition
        rest = tuple(each for each in known.in_sync if each != replica) or known.in_sync
        if known.leader == replica:
            self._change(in_sync=rest, leader=None)
        elif rest != known.in_sync:
            self._change(in_sync=rest)

    def _forget(self, replica: ReplicaId) -> None:
        """It has lost something. If it was the last in sync, whoever left that set before it has everything that more
        than one of them acknowledged."""
        self.eligible = [each for each in self.eligible if each != replica]
        known = self.partition
        rest = tuple(each for each in known.in_sync if each != replica) or tuple(self.eligible[-1:]) or known.in_sync
        if rest != known.in_sync:
            self._change(in_sync=rest, leader=None if known.leader == replica else known.leader)
            self.eligible = [each for each in self.eligible if each != replica]

    def _may_join(self, replica: ReplicaId, broker_epoch: Epoch) -> bool:
        return self.is_alive(replica) and self._registrations[replica.broker].broker_epoch == broker_epoch

    def _elect_if_needed(self) -> None:
        if self.partition.leader is None:
            able = [replica for replica in self.partition.in_sync if self.is_alive(replica)]
            if able:
                self._change(leader=able[0])

    def _change(self, **changes: object) -> None:
        known = self.partition
        changed = replace(known, partition_epoch=known.partition_epoch + 1, **changes)  # type: ignore[arg-type]
        if changed.leader != known.leader:
            changed = replace(changed, leader_epoch=known.leader_epoch + 1)
        left = [each for each in known.in_sync if each not in changed.in_sync]
        self.eligible = [each for each in [*self.eligible, *left] if each not in changed.in_sync]
        self.partition = changed
        self._cluster.partition_changed(known, changed)
