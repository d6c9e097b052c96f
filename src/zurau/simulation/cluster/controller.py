"""A model of the controller: who is alive, and who leads and is in sync in every partition.

Its decisions are records of a log that a quorum keeps, which is the other mode's business: here a decision takes a
while to be committed, and nobody hears of it before. A controller that fails loses what was not committed; the next one
begins with what was, and gives everybody time to be heard. One that does not know yet that there is another goes on
answering from what it knew. What is said between it and brokers is lost, doubled and late like everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from zurau.ids import BrokerId, Epoch
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.partition_state import InSyncProposal, PartitionState, choose_leader

if TYPE_CHECKING:
    from zurau.simulation.cluster.world import World

#: Its place in the network.
CONTROLLER = 0
SESSION_MS = 500
#: Moments at which its failing hurts most.
CONTROLLER_CRASH_POINTS = ("before a proposal", "after a proposal", "after a commit")


class Registration(msgspec.Struct, frozen=True):
    incarnation: int
    broker_epoch: Epoch
    is_fenced: bool = False


class Image(msgspec.Struct):
    """What the log says."""

    registrations: dict[BrokerId, Registration] = msgspec.field(default_factory=dict)
    broker_epochs: int = 0
    partitions: dict[PartitionId, PartitionState] = msgspec.field(default_factory=dict)
    #: Replicas that left the in-sync set without having lost anything, the latest last (KIP-966 has the like).
    eligible: dict[PartitionId, tuple[ReplicaId, ...]] = msgspec.field(default_factory=dict)

    def copy(self) -> Image:
        return Image(dict(self.registrations), self.broker_epochs, dict(self.partitions), dict(self.eligible))


class Controller:
    def __init__(self, world: World) -> None:
        self._world = world
        self._image = Image()
        self.committed = Image()
        #: Counts controllers: what an earlier one has not committed is never committed.
        self.controller_epoch = 0
        self.is_up = True
        self.commit_ms = world.swarm.commit_ms
        self.crash_at: str | None = None
        self.crash_down_ms = 0
        self._is_changed = False
        self._committed_by_ms = 0.0
        #: Not in the log: when each broker was heard, and which replicas it said that it has.
        self.heard_ms: dict[BrokerId, float] = {}
        self._has: dict[BrokerId, Mapping[PartitionId, ReplicaId]] = {}
        #: What its directories are called, whether a replica works there or not.
        self._names: dict[BrokerId, Mapping[PartitionId, ReplicaId]] = {}
        #: An earlier controller that does not know it, for whom, and until when.
        self._stale: tuple[Image, tuple[int, ...], float] | None = None

    # The log

    def _commit_soon(self) -> None:
        """Everything that was decided in this step is one record."""
        if self._is_changed:
            self._is_changed = False
            image, controller_epoch = self._image.copy(), self.controller_epoch
            self._committed_by_ms = max(self._committed_by_ms, self._world.now_ms + self.commit_ms)
            self._world.at(self._committed_by_ms, lambda: self._commit(controller_epoch, image))

    def _commit(self, controller_epoch: int, image: Image) -> None:
        if controller_epoch != self.controller_epoch or not self.is_up:
            return
        before, self.committed = self.committed, self._with_topics(image)
        for group in self._world.groups:
            then, now = before.partitions.get(group.partition), image.partitions.get(group.partition)
            if then is not None and now is not None and then != now:
                group.partition_changed(then, now)
        self._maybe_crash("after a commit")

    def crash(self, down_ms: float) -> None:
        """Somebody else takes over after a while."""
        self.is_up = False
        self.crash_at = None
        controller_epoch = self.controller_epoch = self.controller_epoch + 1
        self._world.note("!! the controller stops")
        self._world.at(self._world.now_ms + down_ms, lambda: self._take_over(controller_epoch))

    def replace(self, brokers: tuple[int, ...], stale_ms: float) -> None:
        """Somebody else takes over at once; these brokers go on asking the one that was."""
        self._stale = (self.committed.copy(), brokers, self._world.now_ms + stale_ms)
        self.controller_epoch += 1
        self._take_over(self.controller_epoch)

    def _take_over(self, controller_epoch: int) -> None:
        if controller_epoch != self.controller_epoch:
            return
        self._world.note("!! another controller takes over")
        self.is_up = True
        self._image = self.committed.copy()
        self._is_changed = False
        self._has, self._names = {}, {}
        self.heard_ms = dict.fromkeys(self._image.registrations, self._world.now_ms)

    def calm_down(self) -> None:
        self.commit_ms, self.crash_at, self._stale = min(self.commit_ms, 5), None, None
        if not self.is_up:
            self.controller_epoch += 1  # whoever was about to take over comes too late
            self._take_over(self.controller_epoch)

    def _maybe_crash(self, point: str) -> bool:
        if self.crash_at == point:
            self.crash(self.crash_down_ms)
            return True
        return False

    # Topics: whoever asks for one asks until it is committed

    def _with_topics(self, image: Image) -> Image:
        """With those that were made, and without those that were deleted, since this was decided."""
        committed = self.committed
        image.partitions = {each: image.partitions.get(each, state) for each, state in committed.partitions.items()}
        image.eligible = {each: image.eligible.get(each, ()) for each in committed.partitions}
        return image

    def create(self, partition: PartitionId, replicas: tuple[ReplicaId, ...]) -> None:
        for image in (self._image, self.committed):
            image.partitions[partition] = PartitionState(None, 0, replicas, 0)
            image.eligible[partition] = ()

    def delete(self, partition: PartitionId) -> None:
        for image in (self._image, self.committed):
            image.partitions.pop(partition, None)
            image.eligible.pop(partition, None)

    # What brokers say

    def heard(
        self,
        broker: BrokerId,
        incarnation: int,
        replicas: Mapping[PartitionId, ReplicaId],
        names: Mapping[PartitionId, ReplicaId],
        *,
        was_clean: bool,
    ) -> None:
        """A broker is alive, these of its replicas work, and these are the names of all its directories."""
        known = self._image.registrations.get(broker)
        if not self.is_up or self._is_misled(broker) or (known is not None and incarnation < known.incarnation):
            return
        self.heard_ms[broker] = self._world.now_ms
        self._has[broker], self._names[broker] = replicas, names
        if known is None or incarnation > known.incarnation:
            self._register(broker, incarnation, was_clean=was_clean)
        elif known.is_fenced:
            self._fence(broker, is_fenced=False)
        for partition in list(self._image.partitions):
            self._forget_old_disks(partition, broker)
            if partition not in replicas:
                self._leave(partition, broker)
        self._elect()
        self._commit_soon()

    def is_old_copy(self, broker: BrokerId, incarnation: int, starts: tuple[int, ...]) -> bool:
        """A disk that does not remember its last start: somebody has put back how it was before."""
        known = self._image.registrations.get(broker)
        if not self.is_up or self._is_misled(broker) or known is None:
            return False
        return incarnation > known.incarnation and known.incarnation not in starts

    def reply_to(self, broker: BrokerId, incarnation: int) -> tuple[Epoch, dict[PartitionId, PartitionState]] | None:
        """What is committed: the number of this start of the broker, and all partitions."""
        if self._is_misled(broker) and self._stale is not None:
            image = self._stale[0]
        elif self.is_up:
            image = self.committed
        else:
            return None
        known = image.registrations.get(broker)
        return (
            (known.broker_epoch, dict(image.partitions))
            if known is not None and known.incarnation == incarnation
            else None
        )

    def look(self) -> None:
        """Fence whoever has not been heard of."""
        if not self.is_up:
            return
        for broker, known in list(self._image.registrations.items()):
            silent_ms = self._world.now_ms - self.heard_ms.get(broker, 0.0)
            if not known.is_fenced and silent_ms > SESSION_MS:
                self._fence(broker, is_fenced=True)
                for partition in list(self._image.partitions):
                    self._leave(partition, broker)
        self._elect()
        self._commit_soon()

    def propose(self, partition: PartitionId, proposal: InSyncProposal) -> None:
        """A leader wants another in-sync set. What was refused must not be accepted later, when it comes a second
        time: so a refusal counts as a change."""
        known = self._image.partitions.get(partition)
        if not self.is_up or known is None or self._is_misled(proposal.leader.broker):
            return
        asked = (proposal.leader, proposal.leader_epoch, proposal.partition_epoch)
        if asked != (known.leader, known.leader_epoch, known.partition_epoch):
            return
        if self._maybe_crash("before a proposal"):
            return
        joining = zip(proposal.in_sync, proposal.broker_epochs, strict=True)
        accepted = all(each in known.in_sync or self._may_join(partition, each, epoch) for each, epoch in joining)
        self._change(partition, in_sync=proposal.in_sync if accepted else known.in_sync)
        self._commit_soon()
        self._maybe_crash("after a proposal")

    def _is_misled(self, broker: BrokerId) -> bool:
        """It still asks an earlier controller."""
        return self._stale is not None and broker in self._stale[1] and self._world.now_ms < self._stale[2]

    # Brokers

    def is_alive(self, partition: PartitionId, replica: ReplicaId) -> bool:
        known = self._image.registrations.get(replica.broker)
        has = self._has.get(replica.broker, {})
        return known is not None and not known.is_fenced and has.get(partition) == replica

    def _register(self, broker: BrokerId, incarnation: int, *, was_clean: bool) -> None:
        image = self._image
        image.broker_epochs += 1
        image.registrations[broker] = Registration(incarnation, image.broker_epochs)
        self._is_changed = True
        for partition, known in list(image.partitions.items()):
            if not was_clean and not self._world.swarm.settings.waits_for_flush:
                # It may have lost what it was counted for, unless that was flushed; let it catch up first. So has one
                # that it does not name because it does not work.
                for each in (*known.in_sync, *image.eligible[partition]):
                    if each.broker == broker:
                        self._forget(partition, each)
            if known.leader is not None and known.leader.broker == broker:
                self._change(partition, leader=None)  # it led before it was restarted

    def _forget_old_disks(self, partition: PartitionId, broker: BrokerId) -> None:
        now = self._names[broker].get(partition)
        if now is not None:
            for each in (*self._image.partitions[partition].in_sync, *self._image.eligible[partition]):
                if each.broker == broker and each != now:
                    self._forget(partition, each, now)  # its disk is gone

    def _fence(self, broker: BrokerId, *, is_fenced: bool) -> None:
        self._image.registrations[broker] = replace(self._image.registrations[broker], is_fenced=is_fenced)
        self._is_changed = True

    # Partitions

    def _leave(self, partition: PartitionId, broker: BrokerId) -> None:
        """Not in sync any more, unless it is the last; and not the leader."""
        known = self._image.partitions[partition]
        rest = tuple(each for each in known.in_sync if each.broker != broker) or known.in_sync
        if known.leader is not None and known.leader.broker == broker:
            self._change(partition, in_sync=rest, leader=None)
        elif rest != known.in_sync:
            self._change(partition, in_sync=rest)

    def _forget(self, partition: PartitionId, replica: ReplicaId, now: ReplicaId | None = None) -> None:
        """It has lost something. If it was the last in sync, whoever left that set before it has everything that more
        than one of them acknowledged. Before anybody has led there was nothing to lose: it stays, under the name that
        it has now."""
        eligible = self._image.eligible
        known = self._image.partitions[partition]
        if known.leader_epoch == 0:
            self._rename(partition, replica, now or replica)
            return
        eligible[partition] = tuple(each for each in eligible[partition] if each != replica)
        rest = tuple(each for each in known.in_sync if each != replica) or eligible[partition][-1:] or known.in_sync
        if rest != known.in_sync:
            self._change(partition, in_sync=rest, leader=None if known.leader == replica else known.leader)
            eligible[partition] = tuple(each for each in eligible[partition] if each != replica)

    def _rename(self, partition: PartitionId, replica: ReplicaId, now: ReplicaId) -> None:
        in_sync, eligible = (
            tuple(now if each == replica else each for each in names)
            for names in (self._image.partitions[partition].in_sync, self._image.eligible[partition])
        )
        if now != replica:
            self._change(partition, in_sync=in_sync)
            self._image.eligible[partition] = eligible

    def _may_join(self, partition: PartitionId, replica: ReplicaId, broker_epoch: Epoch) -> bool:
        registered = self._image.registrations.get(replica.broker)
        return self.is_alive(partition, replica) and registered is not None and registered.broker_epoch == broker_epoch

    def able(self, partition: PartitionId) -> list[ReplicaId]:
        """Who could lead."""
        return [each for each in self._image.partitions[partition].in_sync if self.is_alive(partition, each)]

    def chosen(self, partition: PartitionId) -> ReplicaId | None:
        """Who shall lead, committed or not."""
        return self._image.partitions[partition].leader

    def is_told_of_failure(self, partition: PartitionId, broker: BrokerId) -> bool:
        """The broker is alive, and has no such replica that works."""
        has = self._has.get(broker)
        return has is not None and partition not in has

    def _elect(self) -> None:
        for partition, known in list(self._image.partitions.items()):
            if known.leader is None:
                leader = choose_leader(self.able(partition), self.led())
                if leader is not None:
                    self._change(partition, leader=leader)

    def led(self) -> dict[BrokerId, int]:
        """How many partitions each broker leads."""
        count: dict[BrokerId, int] = {}
        for state in self._image.partitions.values():
            if state.leader is not None:
                count[state.leader.broker] = count.get(state.leader.broker, 0) + 1
        return count

    def _change(self, partition: PartitionId, **changes: object) -> None:
        image = self._image
        known = image.partitions[partition]
        changed = replace(known, partition_epoch=known.partition_epoch + 1, **changes)
        if changed.leader != known.leader:
            changed = replace(changed, leader_epoch=known.leader_epoch + 1)
        left = [each for each in known.in_sync if each not in changed.in_sync]
        image.eligible[partition] = tuple(
            each for each in (*image.eligible[partition], *left) if each not in changed.in_sync
        )
        image.partitions[partition] = changed
        self._is_changed = True
        if changed.leader != known.leader and changed.leader is not None:
            self._world.elected(partition, changed.leader)
