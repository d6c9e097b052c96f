"""One world from one seed: hosts, network, clients, faults, and an agenda of what happens when."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from random import Random

from zurau.ids import BrokerId, Offset
from zurau.replica.effects import Effect
from zurau.replica.events import VoterChangeAsked
from zurau.replica.identity import ReplicaId
from zurau.replica.messages import Message, SnapshotPoint
from zurau.replica.partition_state import InSyncProposal
from zurau.replica.position import Batch
from zurau.replica.quorum import majority
from zurau.replica.replica import Replica
from zurau.simulation.cluster.checkers import QUORUM_CHECKERS, Checker, LookingChecker, Truth, Violation
from zurau.simulation.cluster.clients import Client
from zurau.simulation.cluster.consumers import Consumer
from zurau.simulation.cluster.faults import Fault
from zurau.simulation.cluster.history import History
from zurau.simulation.cluster.host import AnyReplica, Host
from zurau.simulation.cluster.network import Network
from zurau.simulation.cluster.snapshots import Snapshot
from zurau.simulation.cluster.state_checkers import STATE_CHECKERS
from zurau.simulation.cluster.storage import ReplicaDisk
from zurau.simulation.cluster.swarm import Swarm, calm
from zurau.simulation.cluster.transcript import Transcript

#: How long a cluster may take to become whole when nothing goes wrong any more.
CALM_MS = 30_000
_OPERATOR_MS = 300
_LOOK_MS = 100


class Cluster:
    """Replicas that vote."""

    host_class: type[Host] = Host

    def __init__(
        self,
        swarm: Swarm,
        faults: Sequence[Fault],
        *,
        transcript: Transcript | None = None,
    ) -> None:
        self.swarm = swarm
        self.transcript = transcript
        self.now_ms = 0.0
        self.event_count = 0
        self.truth = Truth()
        self.history = History()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._agenda_count = 0
        self._chance = Random(f"network {swarm.mode} {swarm.seed}")
        self.network = Network(swarm, self._chance, lambda delay_ms, act: self.at(self.now_ms + delay_ms, act))
        self.broker_ids = tuple(BrokerId(number) for number in range(1, swarm.brokers + 1))
        voters = tuple(ReplicaId(broker, "a") for broker in self.broker_ids)
        self.hosts = [self.host_class(self, broker, ReplicaDisk("a", voters)) for broker in self.broker_ids]
        self.clients = [Client(self, number) for number in range(swarm.clients)]
        self.consumer = Consumer(self)
        self._watchers: dict[type[Effect], list[Checker]] = {}
        self.all_checkers = self.checkers()
        self._lookers = [checker for checker in self.all_checkers if isinstance(checker, LookingChecker)]
        for checker in self.all_checkers:
            for kind in checker.watches:
                self._watchers.setdefault(kind, []).append(checker)
        for fault in faults:
            self.at(fault.at_ms, lambda fault=fault: self._strike(fault))  # type: ignore[misc]
        self._is_calm = False
        self._lost_disks: dict[ReplicaId, ReplicaDisk] = {}

    def checkers(self) -> list[Checker]:
        return [checker(self) for checker in (*QUORUM_CHECKERS, *STATE_CHECKERS)]

    # The agenda

    def at(self, at_ms: float, act: Callable[[], None]) -> None:
        self._agenda_count += 1
        heapq.heappush(self._agenda, (at_ms, self._agenda_count, act))

    def at_in_life(self, host: Host, at_ms: float, act: Callable[[], object]) -> None:
        """Unless the host is stopped before."""
        life = host.life
        self.at(at_ms, lambda: act() if host.life == life and host.is_up else None)  # type: ignore[arg-type]

    def run(self) -> None:
        """Trouble, then calm. Raises `Violation`."""
        for host in self.hosts:
            host.start()
        self._look()
        for client in self.clients:
            client.think()
        self.consumer.poll()
        self.at(_OPERATOR_MS, self.operate)
        self.run_until(self.swarm.trouble_ms)
        self._calm_down()
        deadline_ms = self.now_ms + CALM_MS
        while self.missing() is not None and self.now_ms < deadline_ms:
            self.run_until(self.now_ms + _LOOK_MS)
        missing = self.missing()
        if missing is not None:
            raise Violation("BecomesWhole", f"{missing} after {CALM_MS} ms without faults")

    def run_until(self, until_ms: float) -> None:
        agenda = self._agenda
        while agenda and agenda[0][0] <= until_ms:
            self.now_ms, _, act = heapq.heappop(agenda)
            self.event_count += 1
            if self.transcript is not None:
                self.transcript.now_ms = self.now_ms
            act()
        self.now_ms = until_ms

    def note(self, line: str) -> None:
        if self.transcript is not None:
            self.transcript.note(line)

    # Faults

    def _strike(self, fault: Fault) -> None:
        if not self._is_calm:
            self.note(f"!! {fault}")
            fault.strike(self)

    def host(self, broker: int) -> Host:
        return self.hosts[broker - 1]

    def disk_of(self, replica: ReplicaId) -> ReplicaDisk | None:
        """Also one that is lost: what a replica had stored when it said so was true then."""
        host = self.host(replica.broker)
        return host.disk if host.id == replica else self._lost_disks.get(replica)

    def crash(self, host: Host, down_ms: float, *, loses: bool = True) -> None:
        if not host.is_up:
            return
        host.crash(loses=loses)
        self.note(f"!! {host.id} stops; its disk has {host.disk.view().position}")
        life = host.life
        self.at(self.now_ms + down_ms, lambda: self._start(host, life))

    def _start(self, host: Host, life: int) -> None:
        if not host.is_up and host.life == life:
            self.note(f"!! {host.id} starts")
            host.start()

    def wipe(self, host: Host, down_ms: float) -> None:
        """A new directory, unless that would leave too few voters for any replica's idea of who votes."""
        if self.may_lose_disk(host):
            self.crash(host, down_ms)
            self.replace_disk(host, self.new_disk(host.disk))

    def may_lose_disk(self, host: Host) -> bool:
        """Enough voters are left that have everything they promised, whoever is asked who votes."""
        for each in self.hosts:
            voters = each.disk.membership().voters
            alive = [voter for voter in voters if self._is_intact(voter) and voter != host.id]
            if len(alive) < majority(len(voters)):
                return False
        return host.is_up

    def _is_intact(self, replica: ReplicaId) -> bool:
        host = self.host(replica.broker)
        return host.id == replica and not host.disk.is_damaged

    def replace_disk(self, host: Host, disk: ReplicaDisk) -> None:
        self._lost_disks[host.id] = host.disk
        host.disk = disk

    def rename(self, host: Host) -> None:
        """What is on its disk is not what it promised: from now on it is somebody else."""
        name = self.new_disk(host.disk).directory
        self.note(f"!! {host.id} is damaged and becomes {host.broker}{name}")
        self.replace_disk(host, host.disk.salvage(name))

    def damage(self, host: Host) -> None:
        """A bit flips in something that was flushed."""
        if self.may_lose_disk(host):
            where = host.disk.flip_bit(self._chance)
            self.note(f"!! a bit flips on {host.id}: {where or 'nowhere of interest'}")

    def roll_back(self, host: Host, down_ms: float) -> None:
        """An old copy of the disk is put back, under a new name: nobody could tell that it is old, so whoever puts it
        there has to say so."""
        if self.may_lose_disk(host):
            self.crash(host, down_ms)
            self.replace_disk(host, host.old_copy.salvage(self.new_disk(host.disk).directory))

    def new_disk(self, old: ReplicaDisk) -> ReplicaDisk:
        return ReplicaDisk(chr(ord(old.directory) + 1), tuple(ReplicaId(broker, "a") for broker in self.broker_ids))

    def cut(self, pairs: Sequence[tuple[int, int]], duration_ms: float) -> None:
        for pair in pairs:
            self.network.cut(pair)
            self.at(self.now_ms + duration_ms, lambda pair=pair: self.network.mend(pair))  # type: ignore[misc]

    def _calm_down(self) -> None:
        self.note("!! calm")
        self._is_calm = True
        self.network.mend_all()
        self.network.swarm = calm(self.swarm)
        for host in self.hosts:
            host.paused_until_ms = self.now_ms
            host.slow_flush_ms = 0
            host.is_full = host.flush_fails = False
            host.crash_at = None
            if not host.is_up:
                host.start()
        for client in self.clients:
            client.is_done = True

    # What hosts and clients ask of the world

    def send(self, host: Host, to: BrokerId, message: Message) -> None:
        target = self.host(to)
        self.network.send(host.broker, to, lambda: target.receive(message))

    def ask_write(self, client: Client, broker: BrokerId, value: bytes) -> None:
        target = self.host(broker)
        self.network.send(-1, broker, lambda: target.offer(client.number, value))

    def answer(self, host: Host, number: int, value: bytes, offset: Offset | None) -> None:
        if offset is not None:
            self.truth.acknowledged[value] = offset
        leader = host.replica.leader.broker if host.replica is not None and host.replica.leader is not None else None
        client = self.clients[number]
        self.network.send(host.broker, -1, lambda: client.answered(value, offset, leader))

    def ask_snapshot(self, host: Host, leader: BrokerId, point: SnapshotPoint) -> None:
        target = self.host(leader)

        life = host.life

        def arrive(checksum: int, snapshot: Snapshot) -> None:
            if host.life == life:
                host.snapshot_arrived(point, checksum, snapshot)

        def answer() -> None:
            checksum = target.disk.seen.sum_at(point.mark.start_offset)
            snapshot = target.disk.snapshot
            # Retention may have gone on since this was offered; whoever waits asks again then.
            if target.is_up and checksum is not None and snapshot.offset == point.mark.start_offset:
                delay_ms = self._chance.random() * self.network.swarm.snapshot_ms
                send = self.network.send
                self.at(
                    self.now_ms + delay_ms, lambda: send(leader, host.broker, lambda: arrive(checksum, snapshot))
                )

        self.network.send(host.broker, leader, answer)

    def ask_controller(self, host: Host, proposal: InSyncProposal) -> None:
        raise NotImplementedError("replicas that vote have no controller")

    # Watching

    def started(self, host: Host) -> None:
        """A host has a replica again."""

    def stopped(self, host: Host) -> None:
        """A host has lost its replica."""

    def guard(self, host: Host, step: Callable[[AnyReplica], tuple[Effect, ...]]) -> tuple[Effect, ...]:
        """An assertion of the core that fails is a finding like any other."""
        assert host.replica is not None
        try:
            return step(host.replica)
        except AssertionError as failed:
            raise Violation("Assertion", f"{host.id}: {failed}") from failed

    def check(self, host: Host, effect: Effect) -> None:
        if self.transcript is not None:
            self.transcript.did(host, effect)
        for checker in self._watchers.get(type(effect), ()):
            checker.see(host, effect)

    def _look(self) -> None:
        """Some invariants are about what does not happen: nobody says it."""
        self.at(self.now_ms + _LOOK_MS, self._look)
        for checker in self._lookers:
            checker.look()

    # The operator

    def operate(self) -> None:
        """Replace voters whose disk is gone by whoever has their place now, one step at a time."""
        self.at(self.now_ms + _OPERATOR_MS, self.operate)
        current = {host.id for host in self.hosts}
        for host in self.hosts:
            if not host.leads or not isinstance(host.replica, Replica):
                continue
            missing = sorted(current - set(host.replica.voters))
            gone = sorted(set(host.replica.voters) - current)
            if missing:
                host.tell(VoterChangeAsked(add=missing[0]))
            elif gone:
                host.tell(VoterChangeAsked(remove=gone[0]))

    # The end

    def missing(self) -> str | None:
        """What a whole cluster would have and this one has not."""
        if any(client.value is not None for client in self.clients):
            return "a client waits for its record"
        leaders = [host for host in self.hosts if host.leads and host.replica and host.replica.is_established]
        if len(leaders) != 1:
            return f"{len(leaders)} leaders"
        replica = leaders[0].replica
        assert replica is not None
        if self.consumer.offset != replica.high_watermark:
            return f"the consumer has come to {self.consumer.offset}, not {replica.high_watermark}"
        if set(self.members(leaders[0])) != {host.id for host in self.hosts}:
            return "not everybody is a member"
        for host in self.hosts:
            if host.replica is None or host.replica.log.flushed != replica.log.position:
                return f"{host.id} has another log than the leader"
            if host.replica.high_watermark != replica.log.end_offset:
                return f"{host.id} does not know what is committed"
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
