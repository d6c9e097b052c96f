"""One partition of a world: its replicas' places, what is true of it, and whoever checks that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zurau.ids import BrokerId, Offset
from zurau.replica.core.effects import Effect
from zurau.replica.core.events import Event, SnapshotProgressed, VoterChangeAsked
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.items import Batch
from zurau.replica.core.membership import next_change
from zurau.replica.core.messages import SnapshotPoint
from zurau.replica.core.partition_state import InSyncProposal, PartitionState
from zurau.replica.quorum.majority import majority
from zurau.replica.quorum.replica import Replica
from zurau.simulation.cluster.checkers import QUORUM_CHECKERS, Checker, LookingChecker, Truth
from zurau.simulation.cluster.history import History
from zurau.simulation.cluster.host import Host
from zurau.simulation.cluster.snapshots import Snapshot
from zurau.simulation.cluster.state_checkers import STATE_CHECKERS
from zurau.simulation.cluster.storage import ReplicaDisk
from zurau.simulation.searching import Violation

if TYPE_CHECKING:
    from zurau.simulation.cluster.world import World


class ReplicaGroup:
    """Replicas that vote."""

    host_class: type[Host] = Host

    def __init__(self, world: World, partition: PartitionId) -> None:
        self.world = world
        self.swarm = world.swarm
        self.network = world.network
        self.transcript = world.transcript
        self.broker_ids = world.broker_ids
        self.partition = partition
        #: The topic is gone, although nodes may not know it yet.
        self.is_deleted = False
        self.truth = Truth()
        self.history = History()
        voters = tuple(ReplicaId(broker, "a") for broker in self.broker_ids)
        self.hosts = [self.host_class(self, broker, ReplicaDisk("a", voters)) for broker in self.broker_ids]
        self._watchers: dict[type[Effect], list[Checker]] = {}
        self.all_checkers = self.checkers()
        self._lookers = [checker for checker in self.all_checkers if isinstance(checker, LookingChecker)]
        self._flush_watchers = [each for each in self.all_checkers if type(each).flushed is not Checker.flushed]
        for checker in self.all_checkers:
            for kind in checker.watches:
                self._watchers.setdefault(kind, []).append(checker)
        self._lost_disks: dict[ReplicaId, ReplicaDisk] = {}

    @property
    def now_ms(self) -> float:
        return self.world.now_ms

    def checkers(self) -> list[Checker]:
        return [checker(self) for checker in (*QUORUM_CHECKERS, *STATE_CHECKERS, *self.world.more_checkers)]

    def note(self, line: str) -> None:
        self.world.note(line)

    def host(self, broker: int) -> Host:
        return self.hosts[broker - 1]

    def disk_of(self, replica: ReplicaId) -> ReplicaDisk | None:
        """Also one that is lost: what a replica had stored when it said so was true then."""
        host = self.host(replica.broker)
        return host.disk if host.id == replica else self._lost_disks.get(replica)

    def crash(self, host: Host, down_ms: float, *, loses: bool = True) -> None:
        self.world.crash(host.node, down_ms, loses=loses)

    def may_lose(self, host: Host) -> bool:
        """Whether the power may go so that what was not flushed is lost."""
        return True

    def loses(self, host: Host, *, disk: bool = False) -> None:
        """It loses what was not flushed, or everything."""
        if disk:
            for checker in self.all_checkers:
                checker.disk_lost(host)

    def may_wipe(self, host: Host) -> bool:
        """Not when that would leave too few voters for any replica's idea of who votes."""
        for each in self.hosts:
            voters = each.disk.membership().voters
            alive = [voter for voter in voters if self._is_intact(voter) and voter != host.id]
            if len(alive) < majority(len(voters)):
                return False
        return True

    def _is_intact(self, replica: ReplicaId) -> bool:
        host = self.host(replica.broker)
        return host.id == replica and not host.disk.is_damaged

    def reads_again(self, host: Host) -> None:
        """Whatever is damaged on its disk is about to be found. If more depends on it now than when the bit flipped, it
        would be a loss that nobody promises to survive: then it was not so bad."""
        if host.disk.is_damaged and not self.may_wipe(host):
            host.disk.heal()

    def replace_disk(self, host: Host, disk: ReplicaDisk | None = None) -> None:
        self._lost_disks[host.id] = host.disk
        host.is_put_back = False
        host.disk = disk if disk is not None else self.new_disk(host.disk)

    def rename(self, host: Host, disk: ReplicaDisk | None = None, *, promised: ReplicaDisk | None = None) -> None:
        """What is on its disk is not what it promised: from now on it is somebody else. The checkers remember what was
        promised, not what recovery has left of it."""
        before, was = host.name, host.id
        self.replace_disk(host, (disk or host.disk).salvage(self.new_disk(host.disk).directory))
        if promised is not None:
            self._lost_disks[was] = promised
        self.note(f"!! {before} does not have what it promised, and becomes {host.name}")

    def put_back(self, host: Host) -> None:
        """An old copy of the disk, under a new name: nobody here could tell that it is old, so whoever puts it back has
        to say so."""
        self.rename(host, host.old_copy)

    def new_disk(self, old: ReplicaDisk) -> ReplicaDisk:
        return ReplicaDisk(chr(ord(old.directory) + 1), tuple(ReplicaId(broker, "a") for broker in self.broker_ids))

    # What hosts ask of the world

    def acknowledge(self, host: Host, number: int, value: bytes, offset: Offset | None) -> None:
        if offset is not None:
            for checker in self.all_checkers:
                checker.acknowledged(host, value, offset)
            self.truth.acknowledged[value] = offset
            self.world.acknowledged_count += 1
        leader = host.replica.leader.broker if host.replica is not None and host.replica.leader is not None else None
        self.world.answer(host.broker, number, value, offset, leader)

    def ask_snapshot(self, host: Host, leader: BrokerId, point: SnapshotPoint) -> None:
        target = self.host(leader)

        incarnation, transfer = host.incarnation, host.begin_transfer()

        def arrive(checksum: int, snapshot: Snapshot) -> None:
            if (host.incarnation, host.transfer) == (incarnation, transfer):
                host.snapshot_arrived(point, checksum, snapshot)

        def progress(loaded: int) -> None:
            if (host.incarnation, host.transfer) == (incarnation, transfer):
                host.tell(SnapshotProgressed(loaded))

        def answer() -> None:
            checksum = target.disk.seen.sum_at(point.mark.start_offset)
            snapshot = target.disk.snapshot
            # Retention may have gone on since this was offered; whoever waits asks again then.
            if target.is_up and checksum is not None and snapshot.offset == point.mark.start_offset:
                takes_ms = (0.3 + 0.7 * self.world.rng.random()) * self.network.swarm.snapshot_ms
                send, part_ms = self.network.send, self.swarm.settings.fetch_timeout_ms / 4
                for part in range(1, int(takes_ms / part_ms) + 1):
                    self.world.at(
                        self.now_ms + part * part_ms,
                        lambda part=part: send(leader, host.broker, lambda: progress(part)),  # type: ignore[misc]
                    )
                arrives_ms = self.now_ms + takes_ms
                self.world.at(arrives_ms, lambda: send(leader, host.broker, lambda: arrive(checksum, snapshot)))

        self.network.send(host.broker, leader, answer)

    # What only a controller does

    def alter_partition(self, host: Host, proposal: InSyncProposal) -> None:
        raise NotImplementedError("replicas that vote have no controller")

    def partition_changed(self, before: PartitionState, now: PartitionState) -> None:
        raise NotImplementedError("replicas that vote have no controller")

    def elected(self, leader: ReplicaId) -> None:
        raise NotImplementedError("replicas that vote have no controller")

    def registered(self, broker: BrokerId, incarnation: int) -> None:
        raise NotImplementedError("replicas that vote have no controller")

    # Watching

    def guard(self, host: Host, event: Event) -> tuple[Effect, ...]:
        """An assertion of the core that fails is a finding like any other."""
        assert host.replica is not None
        try:
            return host.replica.step(event, host.node.now_ms)
        except AssertionError as failed:
            raise Violation("Assertion", f"{host.name}: {failed}") from failed

    def check(self, host: Host, effect: Effect) -> None:
        if self.transcript is not None:
            self.transcript.did(host, effect)
        for checker in self._watchers.get(type(effect), ()):
            checker.see(host, effect)

    def started(self, host: Host) -> None:
        for checker in self.all_checkers:
            checker.started(host)

    def flushed(self, host: Host) -> None:
        for checker in self._flush_watchers:
            checker.flushed(host)

    def look(self) -> None:
        for checker in self._lookers:
            checker.look()

    # The operator

    def operate(self) -> None:
        """Replace voters whose disk is gone by whoever has their place now, one step at a time."""
        current = {host.id for host in self.hosts}
        for host in self.hosts:
            # One that is stopped would hear it later, when the one to be added may be gone as well: two losses at once.
            if not host.leads or host.is_paused or not isinstance(host.replica, Replica):
                continue
            change = next_change(host.replica.voters, current, host.replica.is_caught_up)
            if change is not None:
                host.tell(VoterChangeAsked(*change))

    # The end

    def forget(self) -> None:
        """No node has it any more."""

    def missing(self) -> str | None:
        """What a whole cluster would have and this one has not."""
        leaders = [host for host in self.hosts if host.leads and host.replica and host.replica.is_established]
        if len(leaders) != 1:
            return f"{len(leaders)} leaders"
        replica = leaders[0].replica
        assert replica is not None
        if set(self.members(leaders[0])) != {host.id for host in self.hosts}:
            return "not everybody is a member"
        for host in self.hosts:
            if host.replica is None or host.replica.log.flushed != replica.log.position:
                return f"{host.id} has another log than the leader"
            if host.replica.high_watermark != replica.log.end_offset:
                return f"{host.id} does not know what is committed"
            if host.disk.start_offset < leaders[0].disk.start_offset:
                return f"{host.id} still has what the leader has removed"
        return self._lost()

    def members(self, leader: Host) -> Sequence[ReplicaId]:
        """Who counts."""
        assert isinstance(leader.replica, Replica)
        return leader.replica.voters

    def _lost(self) -> str | None:
        for host in self.hosts:
            values = {item.data for item in host.disk.seen.items if isinstance(item, Batch)}
            whole = host.disk.seen.first_offset == 0
            lost = sorted(set(self.truth.acknowledged) - values) if whole else []
            if lost:
                return f"{host.id} has lost {lost[:3]}"
            if host.disk.seen.last_sum != self.hosts[0].disk.seen.last_sum:
                return f"{host.id} and {self.hosts[0].id} differ"
        return None
