"""Invariants with names. Each watches some kinds of effects and looks at the disks, not at what a replica believes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from zurau.epochs import EpochMark
from zurau.ids import Epoch, Offset
from zurau.replica.core.effects import AdvanceHighWatermark, Append, Effect, RestartLog, RoleChanged, SaveVote, Truncate
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.roles import Role
from zurau.replica.quorum.majority import majority
from zurau.replica.quorum.replica import Replica
from zurau.simulation.searching import Violation

if TYPE_CHECKING:
    from zurau.simulation.cluster.host import Host
    from zurau.simulation.cluster.replica_group import ReplicaGroup


#: How often replicas of one partition may stand for election until it is whole again.
ELECTIONS_MAX = 40


def meaning_of(violation: Violation, checkers: Iterable[object]) -> str:
    """What the invariant says, in the words of whoever checks it."""
    found = next((each for each in checkers if type(each).__name__ == violation.invariant), None)
    known = {"Assertion": "The core itself noticed.", "BecomesWhole": "When faults end, everything is well again."}
    return " ".join((type(found).__doc__ or "").split()) if found is not None else known[violation.invariant]


@dataclass(slots=True)
class Truth:
    """What has been committed, once and for all, as checksums of the log up to each offset."""

    end: Offset = 0
    sums: dict[Offset, int] = field(default_factory=dict)
    #: Values that clients were told are committed, and the offset behind each.
    acknowledged: dict[bytes, Offset] = field(default_factory=dict)
    #: Batches that compaction has removed somewhere, by where they began.
    compacted: dict[Offset, Batch] = field(default_factory=dict)


class Checker:
    watches: tuple[type[Effect], ...] = ()

    def __init__(self, group: ReplicaGroup) -> None:
        self.group = group
        self.truth = group.truth

    def see(self, host: Host, effect: Effect) -> None:
        """It has done this; looked for by kind."""

    def started(self, host: Host) -> None:
        """It has a replica again, with what its disk has."""

    def disk_lost(self, host: Host) -> None:
        """Its disk is about to be another: an empty one, or an old copy."""

    def flushed(self, host: Host) -> None:
        """It is about to be told that something is flushed."""

    def acknowledged(self, host: Host, value: bytes, offset: Offset) -> None:
        """A client is about to be told that its record is committed."""

    def require(self, holds: bool, seen: Callable[[], str]) -> None:
        if not holds:
            raise Violation(type(self).__name__, seen())


class LookingChecker(Checker):
    """One that also looks now and then, for what should have happened and did not."""

    def look(self) -> None:
        raise NotImplementedError


class OneLeaderPerEpoch(Checker):
    """Nobody leads in an epoch in which somebody else led; nor the same one again after a restart."""

    watches = (RoleChanged,)

    def __init__(self, group: ReplicaGroup) -> None:
        super().__init__(group)
        self._leaders: dict[Epoch, tuple[ReplicaId, int]] = {}

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, RoleChanged)
        if effect.role is Role.LEADER:
            first = self._leaders.setdefault(effect.epoch, (host.id, host.incarnation))
            self.require(
                first == (host.id, host.incarnation), lambda: f"{first[0]} and {host.id} lead in {effect.epoch}"
            )


class VotesAreKept(Checker):
    """A replica's epoch never goes back, and its vote of an epoch is given once; across restarts too."""

    watches = (SaveVote, RoleChanged)

    def __init__(self, group: ReplicaGroup) -> None:
        super().__init__(group)
        self._votes: dict[ReplicaId, tuple[Epoch, ReplicaId | None]] = {}

    def see(self, host: Host, effect: Effect) -> None:
        epoch, vote = self._votes.get(host.id, (0, None))
        if isinstance(effect, SaveVote):
            kept = effect.epoch > epoch or (effect.epoch == epoch and vote in (None, effect.voted_for))
            self.require(kept, lambda: f"{host.id} saved {effect} after {epoch}, {vote}")
            self._votes[host.id] = (effect.epoch, effect.voted_for)
        elif isinstance(effect, RoleChanged):
            self.require(effect.epoch >= epoch, lambda: f"{host.id} is in {effect.epoch} after {epoch}")


class LogsMatch(Checker):
    """Items of the same epoch and offset have the same log before them, everywhere and at all times."""

    watches = (Append,)

    def __init__(self, group: ReplicaGroup) -> None:
        super().__init__(group)
        self._sums: dict[tuple[Epoch, Offset, bool], int] = {}

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, Append)
        log = host.disk.seen
        for index in range(host.appended_from, len(log.items)):
            item = log.items[index]
            place = (item.epoch, log.ends[index], isinstance(item, Batch))
            known = self._sums.setdefault(place, log.sums[index])
            self.require(known == log.sums[index], lambda item=item: f"{host.id} has another log up to {item}")  # type: ignore[misc]


class LeadersAreComplete(Checker):
    """A new leader has everything that is committed; unless a later one was before it, and it hears of that next."""

    watches = (RoleChanged,)

    def __init__(self, group: ReplicaGroup) -> None:
        super().__init__(group)
        self._latest: Epoch = -1

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, RoleChanged)
        if effect.role is not Role.LEADER or effect.epoch < self._latest:
            return
        self._latest = effect.epoch
        if self.truth.end > host.disk.start_offset:
            found = host.disk.seen.sum_at(self.truth.end)
            self.require(
                found == self.truth.sums[self.truth.end],
                lambda: f"{host.id} leads in {effect.epoch} without what is committed up to {self.truth.end}",
            )


class CommittedNeverChanges(Checker):
    """What one replica has released, every replica releases, the same at the same offsets."""

    watches = (AdvanceHighWatermark,)

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, AdvanceHighWatermark)
        truth, log, upto = self.truth, host.disk.seen, effect.high_watermark
        found = log.sum_at(upto)
        self.require(found is not None, lambda: f"{host.id} released {upto}, which is behind its log's end")
        assert found is not None
        known = truth.sums.setdefault(upto, found)
        self.require(known == found, lambda: f"{host.id} has something else committed up to {upto}")
        if upto > truth.end:
            before = log.sum_at(truth.end)
            agrees = truth.end <= log.first_offset or before == truth.sums.get(truth.end, 0)
            self.require(agrees, lambda: f"{host.id} commits up to {upto} and has something else before {truth.end}")
            truth.end = upto


class HighWatermarksOnlyRise(Checker):
    """Within one life of a replica; and they are never behind the end of its log."""

    watches = (AdvanceHighWatermark,)

    def __init__(self, group: ReplicaGroup) -> None:
        super().__init__(group)
        self._highest: dict[tuple[ReplicaId, int], Offset] = {}

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, AdvanceHighWatermark)
        incarnation = (host.id, host.incarnation)
        before = self._highest.get(incarnation, -1)
        self.require(effect.high_watermark > before, lambda: f"{host.id}: {effect.high_watermark} after {before}")
        self._highest[incarnation] = effect.high_watermark


class NothingCommittedIsTruncated(Checker):
    """No replica cuts off what is committed, known to it or not."""

    watches = (Truncate,)

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, Truncate)
        end = self.truth.end
        if end <= effect.point.offset:
            return
        held = host.disk.before_the_last_write().sum_at(end) == self.truth.sums.get(end, 0)
        self.require(not held, lambda: f"{host.id} cuts at {effect.point} what is committed up to {end}")


class CommittedIsOnAMajority(Checker):
    """When a leader releases an offset, a majority of its voters has flushed everything before it, its mark as well."""

    watches = (AdvanceHighWatermark,)

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, AdvanceHighWatermark)
        if not host.leads:
            return
        assert isinstance(host.replica, Replica)
        voters = host.replica.voters
        have = [voter for voter in voters if self._has_flushed(voter, effect.high_watermark, host.replica.epoch)]
        self.require(
            len(have) >= majority(len(voters)),
            lambda: f"{host.id} committed {effect.high_watermark}; of {_names(voters)} only {_names(have)} flushed it",
        )

    def _has_flushed(self, voter: ReplicaId, offset: Offset, epoch: Epoch) -> bool:
        disk = self.group.disk_of(voter)
        return disk is not None and disk.safe.sum_at(offset) == self.truth.sums[offset] and disk.has_safe_mark(epoch)


class AcknowledgedIsCommitted(Checker):
    """What a client is told to be committed is below the high watermark, and it is what the client wrote."""

    def acknowledged(self, host: Host, value: bytes, offset: Offset) -> None:
        self.require(offset <= self.truth.end, lambda: f"{host.name} acknowledged {value!r} below {offset}")
        log = host.disk.seen
        if offset <= log.first_offset:
            return  # a repeated one, from before the snapshot that this log begins with
        found = log.items[bisect_left(log.ends, offset)]
        self.require(isinstance(found, Batch) and found.data == value, lambda: f"{host.name} has {found} for {value!r}")


class EpochsFitTheLog(Checker):
    """The marks that a replica knows are those that its disk would give it back; epochs rise."""

    watches = (Append, Truncate, RestartLog)

    def see(self, host: Host, effect: Effect) -> None:
        if host.replica is None:
            return
        known = host.replica.log.epochs.marks
        if isinstance(effect, Append) and all(isinstance(item, Batch) for item in effect.items):
            self.require(bool(known) and effect.items[-1].epoch <= known[-1].epoch, lambda: f"{host.id}: {known}")
            return
        # Effects of one step are carried out one by one; the replica may be further than its disk.
        found = host.disk.view().epochs
        found.advance_start(host.replica.log.start_offset)
        stored = found.marks
        self.require(known[: len(stored)] == stored or isinstance(effect, Truncate), lambda: f"{known} and {stored}")
        rising = all(a.epoch < b.epoch and a.start_offset <= b.start_offset for a, b in pairwise(known))
        self.require(rising, lambda: f"{host.id}: {known}")


class OffsetsAreDense(Checker):
    """Each batch begins where the log ended, the first one at 0, or behind what compaction has removed. Marks take up
    no offset."""

    watches = (Append,)

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, Append)
        log = host.disk.seen
        first = host.appended_from
        end = log.ends[first - 1] if first else log.first_offset
        for item in log.items[first:]:
            begins = item.start_offset if isinstance(item, EpochMark) else item.base_offset
            self.require(begins == end, lambda item=item, end=end: f"{host.id}: {item} after {end}")  # type: ignore[misc]
            end = item.next_offset if isinstance(item, Batch) else end


class OneVoterChangeAtATime(Checker):
    """A leader has at most one change of voters that is not committed, and each differs from the last by one."""

    watches = (Append,)

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, Append)
        if not host.leads or not any(isinstance(item, Batch) and item.voters is not None for item in effect.items):
            return
        assert host.replica is not None
        members = host.disk.membership()
        open_changes = [change for change in members.changes if change.offset >= host.replica.high_watermark]
        self.require(len(open_changes) <= 1, lambda: f"{host.id} has {len(open_changes)} open changes of voters")
        before = members.changes[-2].voters if len(members.changes) > 1 else members.first
        differing = set(before) ^ set(members.voters)
        self.require(len(differing) == 1, lambda: f"from {_names(before)} to {_names(members.voters)}")


class ElectionsAreFew(Checker):
    """When nothing goes wrong any more, a leader is found without many attempts."""

    watches = (RoleChanged,)

    def __init__(self, group: ReplicaGroup) -> None:
        super().__init__(group)
        self.count = 0

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, RoleChanged)
        if effect.role is Role.CANDIDATE and self.group.world.is_calm:
            self.count += 1
            self.require(self.count <= ELECTIONS_MAX, lambda: f"{self.count} attempts to be elected")


class LeadersHearAMajority(LookingChecker):
    """A leader that no majority of voters can reach gives up in time; and so does one that cannot reach those who lack
    something. (Who has everything and asks on, unanswered, has not turned to anybody else.)"""

    def __init__(self, group: ReplicaGroup) -> None:
        super().__init__(group)
        settings = group.swarm.settings
        # One that is heard by nobody still hears its followers ask, until they have lost their patience.
        patience_ms = settings.check_quorum_ms + settings.fetch_timeout_ms * 2
        self._patience_ms = patience_ms + group.swarm.delay_ms * 12 + 300
        #: Since when a leadership is without a majority.
        self._alone_since: dict[tuple[ReplicaId, Epoch], float] = {}

    def look(self) -> None:
        now_ms = self.group.now_ms
        for host in self.group.hosts:
            if not host.leads or host.replica is None:
                continue
            controller_epoch = (host.id, host.replica.epoch)
            if self._has_majority(host) or host.is_paused:
                self._alone_since.pop(controller_epoch, None)
                continue
            since_ms = self._alone_since.setdefault(controller_epoch, now_ms)
            self.require(now_ms - since_ms < self._patience_ms, lambda host=host: f"{host.id} leads all by itself")  # type: ignore[misc]

    def _has_majority(self, host: Host) -> bool:
        assert isinstance(host.replica, Replica)
        voters = host.replica.voters
        return sum(self._is_reachable(host, voter) for voter in voters) >= majority(len(voters))

    def _is_reachable(self, host: Host, voter: ReplicaId) -> bool:
        other = self.group.host(voter.broker)
        is_cut = self.group.network.is_cut
        is_heard = other.id == voter and other.is_up and not is_cut(other.broker, host.broker)
        return other is host or (is_heard and (not is_cut(host.broker, other.broker) or self._has_all(other, host)))

    @staticmethod
    def _has_all(other: Host, leader: Host) -> bool:
        assert other.replica is not None
        assert leader.replica is not None
        return other.replica.stored == leader.replica.log.position


QUORUM_CHECKERS: tuple[type[Checker], ...] = (
    OneLeaderPerEpoch,
    VotesAreKept,
    LogsMatch,
    CommittedNeverChanges,
    LeadersAreComplete,
    HighWatermarksOnlyRise,
    NothingCommittedIsTruncated,
    CommittedIsOnAMajority,
    AcknowledgedIsCommitted,
    EpochsFitTheLog,
    OffsetsAreDense,
    OneVoterChangeAtATime,
    ElectionsAreFew,
    LeadersHearAMajority,
)


def _names(replicas: object) -> str:
    return ", ".join(str(each) for each in replicas)  # type: ignore[attr-defined]
