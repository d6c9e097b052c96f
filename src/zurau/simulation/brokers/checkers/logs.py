"""Invariants of logs: what is committed, what is the same everywhere, and what stays."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from zurau.epochs import NO_EPOCH, EpochMark
from zurau.ids import Epoch, Offset
from zurau.partition.runs import batches_of
from zurau.replica.core.effects import (
    AdvanceHighWatermark,
    AdvanceReplicated,
    Append,
    Effect,
    RestartLog,
    RoleChanged,
    Truncate,
)
from zurau.replica.core.events import Event
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.replica import ReplicaCore
from zurau.replica.core.roles import Role
from zurau.replica.quorum.majority import majority
from zurau.replica.quorum.replica import Replica
from zurau.simulation.brokers.checkers.checker import Checker, Step

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster


class CommittedNeverChanges(Checker):
    """What one replica has released, every replica releases, the same at the same offsets; nobody who has something
    else before it goes on."""

    watches = (AdvanceHighWatermark,)

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, AdvanceHighWatermark)
        upto, truth = it.high_watermark, step.truth
        found = step.view.epoch_before(upto)
        if found != NO_EPOCH:
            known = truth.epochs.setdefault(upto, found)
            self.require(known == found, lambda: f"{self.name(step)} has epoch {found} before {upto}, not {known}")
        if upto > truth.end:
            held = truth.is_held(step.view, step.view.position)
            self.require(held, lambda: f"{self.name(step)} commits {upto}, with something else before {truth.end}")
            truth.end = upto
            truth.epochs.setdefault(upto, found)


class HighWatermarksOnlyRise(Checker):
    """Within one life of a replica; and they are never behind the end of its log."""

    watches = (AdvanceHighWatermark,)

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self._highest: dict[ReplicaCore, Offset] = {}

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, AdvanceHighWatermark)
        before, now = self._highest.get(step.core, -1), it.high_watermark
        self.require(before < now <= step.view.position.offset, lambda: f"{self.name(step)}: {now} after {before}")
        self._highest[step.core] = now


class NothingCommittedIsTruncated(Checker):
    """No replica cuts off what is committed, known to it or not."""

    watches = (Truncate,)

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, Truncate)
        truth, point = step.truth, it.point
        if point.offset < truth.end:
            held = truth.end > step.before.start_offset and truth.is_held(step.before, step.before.position)
            self.require(not held, lambda: f"{self.name(step)} cuts at {point} what is committed up to {truth.end}")


class SnapshotsReplaceNothingCommitted(Checker):
    """A log that begins anew had nothing committed behind its new beginning."""

    watches = (RestartLog,)

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, RestartLog)
        start, before = it.point.mark.start_offset, step.before
        held = [
            end
            for end, epoch in step.truth.epochs.items()
            if max(start, before.start_offset) < end <= before.position.offset
            if epoch != NO_EPOCH and before.epoch_before(end) == epoch
        ]
        self.require(not held, lambda: f"{self.name(step)} drops what is committed to {max(held)} for {start}")


class CommittedIsOnAMajority(Checker):
    """When a leader that was elected releases an offset, a majority of its voters has flushed everything before it, and
    the leader's mark as well."""

    watches = (AdvanceHighWatermark,)

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, AdvanceHighWatermark)
        core = step.core
        if not isinstance(core, Replica) or core.role is not Role.LEADER:
            return
        voters = core.membership.voters
        have = [voter for voter in voters if self.has(step, voter, it.high_watermark)]
        self.require(
            len(have) >= majority(len(voters)),
            lambda: f"{self.name(step)} committed {it.high_watermark}, and of {names(voters)} only {names(have)} have",
        )

    @staticmethod
    def has(step: Step, voter: ReplicaId, upto: Offset) -> bool:
        view = step.truth.replicas.get(voter)
        if view is None or view.counted.offset < upto or view.counted.epoch < step.core.epoch:
            return False
        mine = step.view.epoch_before(upto)
        return mine == NO_EPOCH or view.epoch_before(upto) in (mine, NO_EPOCH)


class ReplicatedIsWhereItWasAskedFor(Checker):
    """When a leader that was elected says that an offset is stored by as many as were asked for, these have flushed
    everything before it, and it is committed."""

    watches = (AdvanceReplicated,)

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, AdvanceReplicated)
        core = step.core
        assert isinstance(core, Replica), "only votes make a majority"
        voters, wanted = core.membership.voters, it.voter_count
        have = [voter for voter in voters if CommittedIsOnAMajority.has(step, voter, it.offset)]
        self.require(
            len(have) >= wanted and it.offset <= core.high_watermark,
            lambda: f"{self.name(step)} replicated {it.offset} to {wanted}, and of {names(voters)} {names(have)} have",
        )


class LeadersAreComplete(Checker):
    """A new leader has everything that is committed; unless a later one was before it, and it hears of that next."""

    watches = (RoleChanged,)

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self._latest: dict[PartitionId, Epoch] = {}

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, RoleChanged)
        if it.role is not Role.LEADER or it.epoch < self._latest.get(step.partition, -1):
            return
        self._latest[step.partition] = it.epoch
        held = step.truth.is_held(step.view, step.view.position)
        self.require(
            held, lambda: f"{self.name(step)} leads in {it.epoch} without what is committed up to {step.truth.end}"
        )


class LogsMatch(Checker):
    """Batches of the same epoch and offset are the same everywhere and at all times; a mark has one place."""

    watches = (Append,)

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self._known: dict[tuple[PartitionId, Epoch, Offset], int] = {}
        self._marks: dict[tuple[PartitionId, Epoch], Offset] = {}

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, Append)
        for item in it.items:
            if isinstance(item, EpochMark):
                start = self._marks.setdefault((step.partition, item.epoch), item.start_offset)
                same = start == item.start_offset or self._begins_there(step, item.start_offset)
                self.require(same, lambda item=item, start=start: f"{self.name(step)} has {item}, not at {start}")  # type: ignore[misc]
            elif item.data:
                for header, stored in batches_of(item):
                    found = crc32(stored)
                    key = (step.partition, header.leader_epoch, header.base_offset)
                    known = self._known.setdefault(key, found)
                    same = known == found or self._is_compacted(step)
                    self.require(same, lambda header=header: f"{self.name(step)} has another batch at {header}")  # type: ignore[misc]

    @staticmethod
    def _begins_there(step: Step, offset: Offset) -> bool:
        """The first mark of a log moves with its start."""
        return any(view.start_offset == offset for view in step.truth.replicas.values())

    def _is_compacted(self, step: Step) -> bool:
        return self.cluster.is_compacted(step.partition)


class WhatWasFlushedIsThere(Checker):
    """What a replica was told to be flushed is there when it starts again, with its last mark, unless it was cut."""

    watches = (RestartLog, Append)

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        #: Cores that begin their log anew. A power failure may come before that is done, and then nothing was promised.
        self._beginning: set[ReplicaCore] = set()

    def began(self, step: Step) -> None:
        """It has a core of a new start."""
        promised, view = step.before.flushed, step.view
        if step.before.core is None or promised.offset < view.start_offset or step.before.core in self._beginning:
            return
        kept = view.position.offset >= promised.offset and view.position.epoch >= promised.epoch
        self.require(kept, lambda: f"{self.name(step)} had flushed {promised}, and starts with {view.position}")
        then, now = step.before.epoch_before(promised.offset), view.epoch_before(promised.offset)
        same = now == then or NO_EPOCH in (then, now)
        self.require(same, lambda: f"{self.name(step)} had epoch {then} before {promised}, and starts with {now}")

    def see(self, step: Step, it: Effect | Event) -> None:
        if isinstance(it, RestartLog):
            self._beginning.add(step.core)
        else:  # it was answered behind the new beginning, so it had asked there, and that comes after it
            self._beginning.discard(step.core)


LOG_CHECKERS: tuple[type[Checker], ...] = (
    LeadersAreComplete,
    CommittedNeverChanges,
    HighWatermarksOnlyRise,
    NothingCommittedIsTruncated,
    SnapshotsReplaceNothingCommitted,
    CommittedIsOnAMajority,
    ReplicatedIsWhereItWasAskedFor,
    LogsMatch,
    WhatWasFlushedIsThere,
)


def names(replicas: object) -> str:
    return ", ".join(map(str, replicas)) or "nobody"  # type: ignore[call-overload]
