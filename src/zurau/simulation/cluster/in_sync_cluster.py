"""A world in which a controller says who leads: hosts that report to it, and what has to be true of its in-sync set."""

from __future__ import annotations

from collections.abc import Sequence

from zurau.ids import BrokerId, Epoch
from zurau.replica.effects import Announce, Append, CutEnd, Effect, Release
from zurau.replica.events import BrokerRegistered, PartitionChanged
from zurau.replica.identity import ReplicaId
from zurau.replica.in_sync_replica import InSyncReplica
from zurau.replica.partition_state import InSyncProposal, PartitionState
from zurau.replica.roles import Role
from zurau.simulation.cluster.checkers import (
    AcknowledgedIsCommitted,
    Checker,
    CommittedNeverChanges,
    EpochsFitTheLog,
    HighWatermarksOnlyRise,
    LeadersAreComplete,
    LogsMatch,
    LookingChecker,
    NothingCommittedIsCut,
    OffsetsAreDense,
    OneLeaderPerEpoch,
)
from zurau.simulation.cluster.cluster import Cluster
from zurau.simulation.cluster.controller import CONTROLLER
from zurau.simulation.cluster.host import AnyReplica, Host
from zurau.simulation.cluster.state_checkers import STATE_CHECKERS
from zurau.simulation.cluster.storage import ReplicaDisk
from zurau.simulation.world import SeededRandomness


class InSyncHost(Host):
    #: Which start was told which number.
    _registered = (0, -1)
    #: What its broker's own copy of the metadata says at a start, before it has heard of anything later.
    _replayed: PartitionChanged | None = None

    def start(self) -> None:
        super().start()
        if self._replayed is not None:
            self.tell(self._replayed)

    @property
    def works(self) -> bool:
        has_lost = isinstance(self.replica, InSyncReplica) and self.replica.has_lost_its_reign
        return not self.is_broken and not has_lost

    def assign(self, broker_epoch: Epoch, state: PartitionState) -> None:
        if self._registered != (self.life, broker_epoch):
            self._registered = (self.life, broker_epoch)
            self.tell(BrokerRegistered(broker_epoch))
        if isinstance(self.replica, InSyncReplica) and self.replica.assignment != state:
            self._replayed = PartitionChanged(state, broker_epoch)
            self.tell(self._replayed)

    def make_replica(self, disk: ReplicaDisk) -> AnyReplica:
        return InSyncReplica(
            self.id,
            log=disk.view(),
            high_watermark=max(disk.high_watermark, disk.start_offset),
            settings=self.group.swarm.settings,
            randomness=SeededRandomness(self._chance.getrandbits(48)),
        )


class InSyncCluster(Cluster):
    """Replicas that a controller leads."""

    host_class = InSyncHost

    def checkers(self) -> list[Checker]:
        self.controller = self.world.controller
        self.controller.create(self.partition, tuple(host.id for host in self.hosts))
        #: Replicas that have lost something, or may have, and of which the controller does not know it yet.
        self.tainted: dict[ReplicaId, int] = {}
        found = [checker(self) for checker in (*IN_SYNC_CHECKERS, *STATE_CHECKERS, *self.world.more_checkers)]
        self.in_sync_checkers = [checker for checker in found if isinstance(checker, InSyncChecker)]
        return found

    @property
    def state(self) -> PartitionState:
        """What the controller has committed."""
        return self.controller.committed.partitions[self.partition]

    def forget(self) -> None:
        self.controller.delete(self.partition)

    # Between brokers and the controller

    def ask_controller(self, host: Host, proposal: InSyncProposal) -> None:
        self.network.send(host.broker, CONTROLLER, lambda: self.controller.propose(self.partition, proposal))

    def partition_changed(self, before: PartitionState, now: PartitionState) -> None:
        leader = now.leader or "nobody"
        where = "" if self.swarm.partitions == 1 else f" of {self.partition.partition}"
        self.note(
            f"-- the controller{where}: {leader} leads in epoch {now.leader_epoch}, in sync: {_names(now.in_sync)}"
        )
        for checker in self.in_sync_checkers:
            checker.changed(before, now)

    def elected(self, leader: ReplicaId) -> None:
        for checker in self.in_sync_checkers:
            checker.elected(leader)

    def registered(self, broker: BrokerId, life: int) -> None:
        """The controller knows of this start, and of every loss before it; and the broker knows that, and will not say
        once more that it has lost something."""
        known = [each for each in self.tainted if each.broker == broker and self.tainted[each] < life]
        for each in known:
            del self.tainted[each]

    def operate(self) -> None:
        """The controller does everything."""

    # Losses: of k in-sync replicas, at most k-1

    def loses(self, host: Host, *, disk: bool = False) -> None:
        super().loses(host, disk=disk)
        if disk or not self.swarm.settings.waits_for_flush:
            self.tainted[host.id] = host.machine.life

    def may_lose(self, host: Host) -> bool:
        return self.swarm.settings.waits_for_flush or self.may_wipe(host)

    def may_wipe(self, host: Host) -> bool:
        """Somebody is left that has everything, and whom the controller would choose."""
        lost = {*self.tainted, host.id}
        if any(each not in lost for each in self.state.in_sync):
            return True
        # It does not know of every loss yet, and takes the last that it knows of.
        last = [each for each in self.controller.committed.eligible[self.partition] if each != host.id][-1:]
        disk = self.disk_of(last[0]) if last and last[0] not in lost else None
        if disk is None:
            return False
        log = disk.safe if self.swarm.settings.waits_for_flush else disk.seen
        return log.sum_at(self.truth.end) == self.truth.sums.get(self.truth.end, 0)

    def reads_again(self, host: Host) -> None:
        if host.disk.is_damaged and not self.may_wipe(host):
            # The set has shrunk to it since the bit flipped: a loss that nobody promises to survive.
            host.disk.heal()
            self.tainted.pop(host.id, None)

    def put_back(self, host: Host) -> None:
        """An old copy of the disk, under its old name: it does not remember the last start that the controller has
        seen, and so it is found out."""
        self.replace_disk(host, host.old_copy)
        host.is_put_back = True

    def members(self, leader: Host) -> Sequence[ReplicaId]:
        return self.state.in_sync


class InSyncChecker(Checker):
    """One that also sees what the controller decides."""

    cluster: InSyncCluster

    def changed(self, before: PartitionState, now: PartitionState) -> None:
        """The controller has decided, and it is committed."""

    def elected(self, leader: ReplicaId) -> None:
        """The controller has chosen a leader."""

    def untainted(self) -> list[ReplicaId]:
        return [each for each in self.cluster.state.in_sync if each not in self.cluster.tainted]

    def lacking(self, replicas: Sequence[ReplicaId], *, flushed: bool) -> list[ReplicaId]:
        """Those that do not have everything that is committed."""
        end = self.truth.end
        found = []
        for replica in replicas:
            disk = self.cluster.disk_of(replica)
            log = disk.safe if flushed and disk is not None else disk.seen if disk is not None else None
            if log is None or (end > log.first_offset and log.sum_at(end) != self.truth.sums.get(end, 0)):
                found.append(replica)
        return found


class InSyncHaveWhatIsCommitted(InSyncChecker):
    """Every replica that the controller counts has everything that is committed, as durably as the topic asks."""

    watches = (Release, CutEnd)

    def see(self, host: Host, effect: Effect) -> None:
        self._check()

    def changed(self, before: PartitionState, now: PartitionState) -> None:
        self._check()

    def _check(self) -> None:
        flushed = self.cluster.swarm.settings.waits_for_flush
        lacking = self.lacking(self.untainted(), flushed=flushed)
        self.require(not lacking, lambda: f"{_names(lacking)} in sync without what is committed to {self.truth.end}")


class LeadersCountEverybody(InSyncChecker):
    """The leader of the controller's epoch commits by a set that contains the controller's, and by enough replicas."""

    watches = (Release, Announce)

    def see(self, host: Host, effect: Effect) -> None:
        if isinstance(host.replica, InSyncReplica) and host.replica.role is Role.LEADER and isinstance(effect, Release):
            known = self.cluster.state
            if known.leader_epoch == host.replica.epoch:
                missing = sorted(set(known.in_sync) - set(host.replica.maximal_in_sync))
                self.require(not missing, lambda: f"{host.id} does not count {_names(missing)}")
            minimum = self.cluster.swarm.settings.in_sync_min
            self.require(len(host.replica.maximal_in_sync) >= minimum, lambda: f"{host.id} commits by too few")


class ControllerEpochsOnlyRise(InSyncChecker, LookingChecker):
    """The partition's epoch and the leader's never go back; a leader is in sync; nobody leads without being told."""

    watches = (Append,)

    def see(self, host: Host, effect: Effect) -> None:
        assert isinstance(effect, Append)
        limit = self.cluster.state.leader_epoch
        self.require(effect.items[-1].epoch <= limit, lambda: f"{host.id} has an epoch that nobody gave")

    def changed(self, before: PartitionState, now: PartitionState) -> None:
        rises = now.partition_epoch > before.partition_epoch and now.leader_epoch >= before.leader_epoch
        self.require(rises, lambda: f"{before} -> {now}")
        self.require(bool(now.in_sync) and now.leader in (None, *now.in_sync), lambda: f"{now}")

    def look(self) -> None:
        actual = self.cluster.state.partition_epoch
        for host in self.cluster.hosts:
            if isinstance(host.replica, InSyncReplica):
                known = host.replica.assignment.partition_epoch
                self.require(known <= actual, lambda: "somebody knows more than the controller")


class LeadersAreSpread(InSyncChecker):
    """Whoever is chosen to lead leads no more partitions than another that could have been chosen."""

    def elected(self, leader: ReplicaId) -> None:
        controller = self.cluster.controller
        led = controller.led()
        for other in controller.able(self.cluster.partition):
            fewer = led.get(other.broker, 0) < led[leader.broker] - 1
            self.require(not fewer, lambda other=other: f"{leader} leads, and {other} leads less: {led}")  # type: ignore[misc]


class FailedReplicasDoNotLead(InSyncChecker, LookingChecker):
    """A controller that has been told that a replica failed does not let it lead while another could."""

    def look(self) -> None:
        controller, partition = self.cluster.controller, self.cluster.partition
        leader, others = controller.chosen(partition), controller.able(partition)
        fails = leader is not None and controller.is_told_of_failure(partition, leader.broker)
        self.require(not (fails and others), lambda: f"{leader} has failed, leads, and {_names(others)} could")


IN_SYNC_CHECKERS: tuple[type[Checker], ...] = (
    OneLeaderPerEpoch,
    LogsMatch,
    CommittedNeverChanges,
    LeadersAreComplete,
    HighWatermarksOnlyRise,
    NothingCommittedIsCut,
    AcknowledgedIsCommitted,
    EpochsFitTheLog,
    OffsetsAreDense,
    InSyncHaveWhatIsCommitted,
    LeadersCountEverybody,
    ControllerEpochsOnlyRise,
    LeadersAreSpread,
    FailedReplicasDoNotLead,
)


def _names(replicas: Sequence[ReplicaId]) -> str:
    return ", ".join(map(str, replicas)) or "nobody"
