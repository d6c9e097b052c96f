"""Invariants of elections, and of leaders that a controller names."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from zurau.ids import Epoch
from zurau.machines.controller.image import PartitionImage
from zurau.replica.core.effects import AdvanceHighWatermark, Append, Effect, RoleChanged
from zurau.replica.core.events import Event, PartitionChanged, Received
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.messages import BeginEpoch, Fetched, HighWatermark, Vote, VoteAnswer
from zurau.replica.core.partition_state import PartitionState
from zurau.replica.core.roles import Role
from zurau.replica.in_sync.replica import InSyncReplica
from zurau.simulation.brokers.checkers.checker import Checker, Step
from zurau.simulation.brokers.checkers.logs import names

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster

#: How often replicas of one partition may stand for election until it is whole again.
ELECTIONS_MAX = 40


class OneLeaderPerEpoch(Checker):
    """Nobody leads in an epoch in which somebody else led; nor the same one again after a restart.

    Here as followers are told it; `watch.py` looks at the leaders themselves."""

    watches = (Received,)

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self._leaders: dict[tuple[PartitionId, Epoch], ReplicaId] = {}

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, Received)
        said = it.message
        if isinstance(said, Fetched | BeginEpoch | HighWatermark):
            first = self._leaders.setdefault((step.partition, said.epoch), said.sender)
            name = self.cluster.partition_name
            self.require(
                first == said.sender, lambda: f"{said.sender} leads {name(step.partition)} in {said.epoch}, and {first}"
            )


class VotesAreKept(Checker):
    """A replica votes once in an epoch, across restarts too: as those see it who are voted for."""

    watches = (Received,)

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self._votes: dict[tuple[PartitionId, ReplicaId, Epoch], ReplicaId] = {}

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, Received)
        message = it.message
        if isinstance(message, Vote) and not message.is_pre:
            self._voted(step, message.sender, message.epoch, message.sender)
        elif isinstance(message, VoteAnswer) and message.is_granted and not message.is_pre:
            self._voted(step, message.sender, message.epoch, step.core.id)

    def _voted(self, step: Step, voter: ReplicaId, epoch: Epoch, candidate: ReplicaId) -> None:
        first = self._votes.setdefault((step.partition, voter, epoch), candidate)
        where = self.cluster.partition_name(step.partition)
        self.require(first == candidate, lambda: f"{where}: {voter} votes for {first} and {candidate} in {epoch}")


class OneVoterChangeAtATime(Checker):
    """A leader has at most one change of voters that is not committed, and each differs from the last by one."""

    watches = (Append,)

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, Append)
        core = step.core
        if core.role is not Role.LEADER or not any(isinstance(item, Batch) and item.voters for item in it.items):
            return
        members = core.membership
        still_open = [change for change in members.changes if change.offset >= core.high_watermark]
        self.require(len(still_open) <= 1, lambda: f"{self.name(step)} has {len(still_open)} open changes of voters")
        before = members.changes[-2].voters if len(members.changes) > 1 else members.first
        differing = set(before) ^ set(members.voters)
        self.require(len(differing) == 1, lambda: f"from {names(before)} to {names(members.voters)}")


class ElectionsAreFew(Checker):
    """When nothing goes wrong any more, a leader is found without many attempts."""

    watches = (RoleChanged,)

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self._count: Counter[PartitionId] = Counter()

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, RoleChanged)
        if self.cluster.is_calm and it.role is Role.CANDIDATE:
            self._count[step.partition] += 1
            count = self._count[step.partition]
            self.require(count <= ELECTIONS_MAX, lambda: f"{self.name(step)}: {count} attempts to be elected")


class InSyncChecker(Checker):
    """One that also asks what the controller has decided."""

    def decided(self, partition: PartitionId) -> PartitionImage | None:
        """As the broker knows it that knows most."""
        known = [
            image
            for node in self.cluster.nodes
            if node.broker is not None and (image := node.broker.image.partition(partition)) is not None
        ]
        return max(known, key=lambda image: image.partition_epoch, default=None)


class InSyncHaveWhatIsCommitted(InSyncChecker):
    """Every replica that the controller counts has everything that is committed, as durably as the topic asks."""

    watches = (AdvanceHighWatermark,)

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, AdvanceHighWatermark)
        if not isinstance(step.core, InSyncReplica):
            return
        known = self.decided(step.partition)
        truth = step.truth
        in_sync = [] if known is None else [each for each in known.in_sync if known.has(each)]
        views = {each: truth.replicas.get(each) for each in in_sync}
        lacking = [each for each, view in views.items() if view is None or not truth.is_held(view, view.counted)]
        self.require(
            not lacking, lambda: f"{self.name(step)}: {names(lacking)} in sync without what is below {truth.end}"
        )


class ControllerEpochsOnlyRise(Checker):
    """The controller decides once for each epoch of a partition: whoever is told of it is told the same, the leader's
    epoch never goes back, and a leader is in sync."""

    watches = (PartitionChanged,)

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self._decided: dict[PartitionId, dict[Epoch, PartitionState]] = {}

    def see(self, step: Step, it: Effect | Event) -> None:
        assert isinstance(it, PartitionChanged)
        told, states = it.partition, self._decided.setdefault(step.partition, {})
        if told.partition_epoch in states:
            known = states[told.partition_epoch]
            self.require(known == told, lambda: f"{self.name(step)} is told {told}, somebody else {known}")
            return
        states[told.partition_epoch] = told
        self.require(told.leader in (None, *told.in_sync), lambda: f"{self.name(step)}: {told}")
        for epoch, known in states.items():
            rises = known.leader_epoch <= told.leader_epoch or epoch > told.partition_epoch
            self.require(rises, lambda known=known: f"{self.name(step)}: {told} after {known}")  # type: ignore[misc]


class LeadersCountEverybody(InSyncChecker):
    """The leader of the controller's epoch commits by a set that contains the controller's, and by enough replicas."""

    watches = (AdvanceHighWatermark,)

    def see(self, step: Step, it: Effect | Event) -> None:
        core = step.core
        if not isinstance(core, InSyncReplica) or core.role is not Role.LEADER:
            return
        known = self.decided(step.partition)
        if known is not None and known.leader_epoch == core.epoch:
            missing = sorted(set(known.in_sync) - set(core.maximal_in_sync))
            self.require(not missing, lambda: f"{self.name(step)} does not count {names(missing)}")
        self.require(
            core.refusal(acks_all=True) is None,
            lambda: f"{self.name(step)} commits by {names(core.maximal_in_sync)}",
        )


LEADER_CHECKERS: tuple[type[Checker], ...] = (
    OneLeaderPerEpoch,
    VotesAreKept,
    OneVoterChangeAtATime,
    ElectionsAreFew,
    InSyncHaveWhatIsCommitted,
    ControllerEpochsOnlyRise,
    LeadersCountEverybody,
)
