"""A world in which a controller says who leads: hosts that report to it, and what has to be true of its in-sync set."""

from __future__ import annotations

from collections.abc import Sequence

from zurau.replica.effects import Announce, Append, CutEnd, Effect, Release
from zurau.replica.events import BrokerRegistered, PartitionChanged
from zurau.replica.identity import ReplicaId
from zurau.replica.in_sync_replica import InSyncReplica
from zurau.replica.partition_state import InSyncProposal, PartitionState
from zurau.replica.roles import Role
from zurau.simulation.cluster.checkers import (
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
from zurau.simulation.cluster.controller import Controller
from zurau.simulation.cluster.host import AnyReplica, Host
from zurau.simulation.cluster.state_checkers import STATE_CHECKERS
from zurau.simulation.cluster.storage import ReplicaDisk
from zurau.simulation.world import SeededRandomness

#: The controller's place in the network.
CONTROLLER = 0
_HEARTBEAT_MS = 60


class InSyncHost(Host):
    def make_replica(self, disk: ReplicaDisk) -> AnyReplica:
        return InSyncReplica(
            self.id,
            log=disk.view(),
            high_watermark=max(disk.high_watermark, disk.start_offset),
            settings=self._cluster.swarm.settings,
            randomness=SeededRandomness(self._chance.getrandbits(48)),
        )


class InSyncCluster(Cluster):
    """Replicas that a controller leads."""

    host_class = InSyncHost

    def checkers(self) -> list[Checker]:
        replicas = tuple(host.id for host in self.hosts)
        self.controller = Controller(self, replicas)
        #: Replicas that have lost something, or may have, and of which the controller does not know it yet.
        self.tainted: dict[ReplicaId, int] = {}
        return [checker(self) for checker in (*IN_SYNC_CHECKERS, *STATE_CHECKERS)]

    # Between brokers and the controller

    def started(self, host: Host) -> None:
        self._beat(host)

    def _beat(self, host: Host) -> None:
        """Say that it is alive; hear what the controller says."""
        replica, life, was_clean, is_paused = host.id, host.life, host.was_clean, self.now_ms < host.paused_until_ms
        starts = host.disk.starts
        self.at_in_life(host, self.now_ms + _HEARTBEAT_MS, lambda: self._beat(host))

        def heard() -> None:
            if self.controller.is_old_copy(replica, life, starts):
                self.network.send(CONTROLLER, host.broker, lambda: self._found_out(host, life))
                return
            broker_epoch = self.controller.heard(replica, life, was_clean=was_clean)
            if broker_epoch is not None:
                self._reply(host, life, broker_epoch)

        if not is_paused:
            self.network.send(host.broker, CONTROLLER, heard)

    def _reply(self, host: Host, life: int, broker_epoch: int) -> None:
        partition = self.controller.partition

        def deliver() -> None:
            if host.life == life and host.is_up:
                host.disk.starts = (life,)
                host.tell(BrokerRegistered(broker_epoch))
                host.tell(PartitionChanged(partition))

        self.network.send(CONTROLLER, host.broker, deliver)

    def _found_out(self, host: Host, life: int) -> None:
        """Its disk is an old copy: it begins again as somebody else, with what the copy has."""
        if host.life == life and host.is_up:
            super().crash(host, _HEARTBEAT_MS, loses=False)
            self.rename(host)

    def ask_controller(self, host: Host, proposal: InSyncProposal) -> None:
        self.network.send(host.broker, CONTROLLER, lambda: self.controller.propose(proposal))

    def partition_changed(self, before: PartitionState, now: PartitionState) -> None:
        leader = now.leader or "nobody"
        self.note(f"-- the controller: {leader} leads in epoch {now.leader_epoch}, in sync: {_names(now.in_sync)}")
        for checker in self.in_sync_checkers:
            checker.changed(before, now)

    def registered(self, replica: ReplicaId, life: int) -> None:
        """The controller knows of this start, and of every loss before it."""
        known = [each for each in self.tainted if each.broker == replica.broker and self.tainted[each] < life]
        for each in known:
            del self.tainted[each]

    def operate(self) -> None:
        self.controller.look()
        self.at(self.now_ms + 50, self.operate)

    # Losses: of k in-sync replicas, at most k-1

    def crash(self, host: Host, down_ms: float, *, loses: bool = True) -> None:
        if host.disk.is_damaged and not self._may_lose(host.id):
            # The set has shrunk to it since the bit flipped: a loss that nobody promises to survive.
            host.disk.heal()
            del self.tainted[host.id]
        if loses and not self.swarm.settings.waits_for_flush and host.is_up:
            loses = self._may_lose(host.id)
            if loses:
                self.tainted[host.id] = host.life
        super().crash(host, down_ms, loses=loses)

    def wipe(self, host: Host, down_ms: float) -> None:
        if not host.is_up or not self._may_lose(host.id):
            return
        self.tainted[host.id] = host.life
        super().crash(host, down_ms, loses=False)
        host.was_clean = False
        self.replace_disk(host, self.new_disk(host.disk))

    def may_lose_disk(self, host: Host) -> bool:
        """From the moment at which a disk goes bad it does not count, whoever knows it."""
        may_lose = host.is_up and self._may_lose(host.id)
        if may_lose:
            self.tainted[host.id] = host.life
        return may_lose

    def roll_back(self, host: Host, down_ms: float) -> None:
        """An old copy of the disk is put back, under its old name: it does not remember the last start that
        the controller has seen, and so it is found out."""
        if self.may_lose_disk(host):
            super().crash(host, down_ms, loses=False)
            self.replace_disk(host, host.old_copy)

    def _may_lose(self, replica: ReplicaId) -> bool:
        """Somebody is left that has everything, and whom the controller would choose."""
        lost = {*self.tainted, replica}
        if any(each not in lost for each in self.controller.partition.in_sync):
            return True
        last = [each for each in self.controller.eligible if each not in lost][-1:]
        disk = self.disk_of(last[0]) if last else None
        return disk is not None and disk.seen.sum_at(self.truth.end) == self.truth.sums.get(self.truth.end, 0)

    def members(self, leader: Host) -> Sequence[ReplicaId]:
        return self.controller.partition.in_sync

    @property
    def in_sync_checkers(self) -> list[InSyncChecker]:
        return [checker for checker in self.all_checkers if isinstance(checker, InSyncChecker)]


class InSyncChecker(Checker):
    """One that also sees what the controller decides."""

    cluster: InSyncCluster

    def changed(self, before: PartitionState, now: PartitionState) -> None:
        """The controller has decided."""

    def untainted(self) -> list[ReplicaId]:
        return [each for each in self.cluster.controller.partition.in_sync if each not in self.cluster.tainted]

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
            known = self.cluster.controller.partition
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
        limit = self.cluster.controller.partition.leader_epoch
        self.require(effect.items[-1].epoch <= limit, lambda: f"{host.id} has an epoch that nobody gave")

    def changed(self, before: PartitionState, now: PartitionState) -> None:
        rises = now.partition_epoch > before.partition_epoch and now.leader_epoch >= before.leader_epoch
        self.require(rises, lambda: f"{before} -> {now}")
        self.require(bool(now.in_sync) and now.leader in (None, *now.in_sync), lambda: f"{now}")

    def look(self) -> None:
        actual = self.cluster.controller.partition.partition_epoch
        for host in self.cluster.hosts:
            if isinstance(host.replica, InSyncReplica):
                known = host.replica.assignment.partition_epoch
                self.require(known <= actual, lambda: "somebody knows more than the controller")


IN_SYNC_CHECKERS: tuple[type[Checker], ...] = (
    OneLeaderPerEpoch,
    LogsMatch,
    CommittedNeverChanges,
    LeadersAreComplete,
    HighWatermarksOnlyRise,
    NothingCommittedIsCut,
    EpochsFitTheLog,
    OffsetsAreDense,
    InSyncHaveWhatIsCommitted,
    LeadersCountEverybody,
    ControllerEpochsOnlyRise,
)


def _names(replicas: Sequence[ReplicaId]) -> str:
    return ", ".join(map(str, replicas)) or "nobody"
