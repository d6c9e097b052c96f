"""One world from one seed: machines, a network, partitions, clients, faults, and an agenda of what happens when.

Partitions share machines, streams and bad luck; each of them is a `Cluster` of its own otherwise. A topic that is
deleted is made again under the same name, and machines hear of both when they hear of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from random import Random

from zurau.ids import BrokerId, Offset, TopicId
from zurau.replica.identity import PartitionId, ReplicaId
from zurau.replica.messages import Fetched
from zurau.replica.session import Answer, Question
from zurau.simulation.cluster.checkers import Checker, Violation
from zurau.simulation.cluster.clients import Client
from zurau.simulation.cluster.cluster import Cluster
from zurau.simulation.cluster.consumers import Consumer
from zurau.simulation.cluster.controller import CONTROLLER, Controller
from zurau.simulation.cluster.faults import Fault
from zurau.simulation.cluster.host import Host
from zurau.simulation.cluster.in_sync_cluster import InSyncCluster
from zurau.simulation.cluster.machine import Machine
from zurau.simulation.cluster.network import Network
from zurau.simulation.cluster.recovery_checkers import FailedReplicasAreNoticed, RecoveryKeepsWhatWasFlushed
from zurau.simulation.cluster.stream_checkers import STREAM_CHECKERS, StreamChecker
from zurau.simulation.cluster.swarm import Mode, Swarm, calm
from zurau.simulation.cluster.transcript import Transcript

CLUSTERS: dict[Mode, type[Cluster]] = {"quorum": Cluster, "isr": InSyncCluster}
#: How long a cluster may take to become whole when nothing goes wrong any more.
CALM_MS = 30_000
_OPERATOR_MS = 300
_CONTROLLER_MS = 50
_HEARTBEAT_MS = 60
_LOOK_MS = 100


def batch_count(it: Question | Answer) -> int:
    return sum(len(message.batches) for _, message in it.said if isinstance(message, Fetched))


class World:
    #: Checkers of every mode.
    more_checkers: tuple[type[Checker], ...] = (RecoveryKeepsWhatWasFlushed, FailedReplicasAreNoticed)

    def __init__(self, swarm: Swarm, faults: Sequence[Fault], *, transcript: Transcript | None = None) -> None:
        self.swarm = swarm
        self.transcript = transcript
        self.now_ms = 0.0
        self.event_count = 0
        self.acknowledged_count = 0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._agenda_count = 0
        self._to_pump: list[Machine] = []
        self.chance = Random(f"network {swarm.mode} {swarm.seed}")
        self.network = Network(swarm, self.chance, self)
        self.broker_ids = tuple(BrokerId(number) for number in range(1, swarm.brokers + 1))
        self.machines = [Machine(self, broker) for broker in self.broker_ids]
        self.controller = Controller(self)
        #: Those that some machine still has, and among them, by number, those that clients mean.
        self.groups: list[Cluster] = []
        self.current: list[Cluster] = []
        self._group_count = 0
        for number in range(swarm.partitions):
            self.current.append(self._create(number))
        self.stream_checkers: list[StreamChecker] = [checker(self) for checker in STREAM_CHECKERS]
        self.clients = [Client(self, number) for number in range(swarm.clients)]
        self.consumer = Consumer(self)
        for fault in faults:
            self.at(fault.at_ms, lambda fault=fault: self._strike(fault))  # type: ignore[misc]
        self.is_calm = False

    # The agenda

    def at(self, at_ms: float, act: Callable[[], None]) -> None:
        self._agenda_count += 1
        heapq.heappush(self._agenda, (at_ms, self._agenda_count, act))

    def at_in_life(self, host: Host, at_ms: float, act: Callable[[], object]) -> None:
        """Unless the replica is stopped before."""
        life = host.life
        self.at(at_ms, lambda: act() if host.life == life and host.is_up else None)  # type: ignore[arg-type]

    def in_trouble(self, at_ms: float, act: Callable[[], None]) -> None:
        """What a fault does later; nothing when it is calm by then."""
        self.at(at_ms, lambda: None if self.is_calm else act())

    def run(self) -> None:
        """Trouble, calm, and a while in which nothing happens. Raises `Violation`."""
        for group in self.groups:
            for host in group.hosts:
                self.machine(host.broker).place(host)
        for machine in self.machines:
            machine.start()
        self._look()
        for client in self.clients:
            client.think()
        self.consumer.poll()
        self.at(_OPERATOR_MS, self._operate)
        if self.swarm.mode == "isr":
            self._control()
        self.run_until(self.swarm.trouble_ms)
        self._calm_down()
        deadline_ms = self.now_ms + CALM_MS
        while self.missing() is not None and self.now_ms < deadline_ms:
            self.run_until(self.now_ms + _LOOK_MS)
        missing = self.missing()
        if missing is not None:
            raise Violation("BecomesWhole", f"{missing} after {CALM_MS} ms without faults")
        for checker in self.stream_checkers:
            checker.idle()

    def run_until(self, until_ms: float) -> None:
        agenda, to_pump = self._agenda, self._to_pump
        while agenda and agenda[0][0] <= until_ms:
            self.now_ms, _, act = heapq.heappop(agenda)
            self.event_count += 1
            if self.transcript is not None:
                self.transcript.now_ms = self.now_ms
            act()
            while to_pump:
                to_pump.pop().pump()
        self.now_ms = until_ms

    def note(self, line: str) -> None:
        if self.transcript is not None:
            self.transcript.note(line)

    def _look(self) -> None:
        """Some invariants are about what does not happen: nobody says it."""
        self.at(self.now_ms + _LOOK_MS, self._look)
        for group in self.groups:
            group.look()

    # Between machines

    def machine(self, broker: int) -> Machine:
        return self.machines[broker - 1]

    def pump_soon(self, machine: Machine) -> None:
        """When everything that happens in this moment has happened: it may all go into one message."""
        if machine not in self._to_pump:
            self._to_pump.append(machine)

    def say(self, machine: Machine, to: BrokerId, it: Question | Answer) -> None:
        for checker in self.stream_checkers:
            checker.see(machine, to, it)
        target, sender = self.machine(to), machine.broker
        takes_ms = self.swarm.batch_ms * batch_count(it)
        part_ms = (self.swarm.settings.fetch_wait_ms + self.swarm.settings.retry_ms) / 4
        for part in range(1, int(takes_ms / part_ms) + 1):
            self.network.send(sender, to, lambda: target.hear_part(sender), takes_ms=part * part_ms)
        self.network.send(sender, to, lambda: target.hear(sender, it), takes_ms=takes_ms)

    # Faults

    def _strike(self, fault: Fault) -> None:
        if not self.is_calm:
            self.note(f"!! {fault}")
            fault.strike(self)

    def group_of(self, number: int) -> Cluster:
        """Some partition: faults choose by a number that was drawn before there were any."""
        return self.current[number % len(self.current)]

    def crash(self, machine: Machine, down_ms: float, *, loses: bool = True) -> None:
        if not machine.is_up:
            return
        # Whoever counts on a broker takes this for a loss of all there, of topics that it has not heard of as well.
        counted = [group.host(machine.broker) for group in self.groups]
        loses = loses and all(host.group.may_lose(host) for host in counted)
        for host in counted:
            if loses:
                host.group.loses(host)
        hosts = list(machine.hosts.values())
        machine.crash(loses=loses)
        for host in hosts:
            self.note(f"!! {host.name} stops; its disk has {host.disk.view().position}")
        self._start_later(machine, down_ms)

    def _start_later(self, machine: Machine, down_ms: float) -> None:
        life = machine.life
        self.at(self.now_ms + down_ms, lambda: self._start(machine, life))

    def _start(self, machine: Machine, life: int) -> None:
        if not machine.is_up and machine.life == life:
            self.note(f"!! {machine.broker} starts")
            machine.start()

    def wipe(self, machine: Machine, down_ms: float) -> None:
        """A new disk, unless that would be more than anybody can recover from."""
        for host in self._lose_disks(machine, down_ms):
            host.group.replace_disk(host)
            machine.was_clean = False

    def roll_back(self, machine: Machine, down_ms: float) -> None:
        """An old copy in the place of the disk, under the same condition. It was made of a machine that was stopped in
        good order."""
        for host in self._lose_disks(machine, down_ms):
            host.group.put_back(host)
            machine.starts = machine.old_starts

    def _lose_disks(self, machine: Machine, down_ms: float) -> list[Host]:
        """Whose disks are gone, if so many may be."""
        hosts = [group.host(machine.broker) for group in self.groups]
        if not machine.is_up or not all(host.group.may_wipe(host) for host in hosts):
            return []
        for host in hosts:
            host.group.loses(host, disk=True)
        machine.crash(loses=False)
        self._start_later(machine, down_ms)
        return hosts

    def cut(self, pairs: Sequence[tuple[int, int]], duration_ms: float) -> None:
        for pair in pairs:
            self.network.cut(pair)
            self.at(self.now_ms + duration_ms, lambda pair=pair: self.network.mend(pair))  # type: ignore[misc]

    def reset(self, one: Machine, other: Machine, notice_ms: tuple[float, float]) -> None:
        """What is under way between them is lost; each side notices when it notices."""
        for each, peer, delay_ms in ((one, other.broker, notice_ms[0]), (other, one.broker, notice_ms[1])):
            self.network.reset((each.broker, peer))
            self.in_trouble(self.now_ms + delay_ms, lambda each=each, peer=peer: each.lose_connection(peer))  # type: ignore[misc]

    def _calm_down(self) -> None:
        self.note("!! calm")
        self.is_calm = True
        self.network.calm_down(calm(self.swarm))
        self.controller.calm_down()
        for machine in self.machines:
            machine.paused_until_ms = self.now_ms
            self.pump_soon(machine)
            machine.slow_flush_ms = 0
            machine.is_full = machine.flush_fails = False
            machine.crash_at = None
            if machine.is_up and any(host.is_broken for host in machine.hosts.values()):
                machine.crash(loses=False)
            for group in list(self.groups):
                self._learn(machine, group)
            if not machine.is_up:
                machine.start()
        for client in self.clients:
            client.is_done = True

    # Topics

    def _create(self, number: int) -> Cluster:
        self._group_count += 1
        partition = PartitionId(TopicId(self._group_count.to_bytes(16, "big")), number)
        group = CLUSTERS[self.swarm.mode](self, partition)
        self.groups.append(group)
        return group

    def recreate(self, number: int) -> None:
        """The topic is deleted and made again; machines hear of it one after the other."""
        old = self.current[number]
        old.is_deleted = True
        new = self.current[number] = self._create(number)
        for machine in self.machines:
            for group in (old, new):
                self._hear_of(machine, group, self.now_ms + self.chance.random() * 1500)

    def _hear_of(self, machine: Machine, group: Cluster, at_ms: float) -> None:
        def heard() -> None:
            if not machine.is_up or self.now_ms < machine.paused_until_ms:
                self._hear_of(machine, group, max(self.now_ms + 50, machine.paused_until_ms))
            else:
                self._learn(machine, group)

        if not self.is_calm:
            self.at(at_ms, heard)

    def _learn(self, machine: Machine, group: Cluster) -> None:
        host = group.host(machine.broker)
        if group.is_deleted:
            machine.remove(host)
            host.is_removed = True
            if group in self.groups and all(each.is_removed for each in group.hosts):
                self.groups.remove(group)
                group.forget()
        elif host.partition not in machine.hosts:
            machine.place(host)

    # What clients ask

    def ask_write(self, client: Client, broker: BrokerId, value: bytes) -> None:
        machine = self.machine(broker)

        def arrive() -> None:
            host = machine.host_of(client.partition)
            if host is not None and host.is_up and client.means(host.partition.topic_id):
                host.service.offer(client.number, value)
            elif machine.is_up:
                self.answer(machine.broker, client.number, value, None, None)

        self.network.send(-1, broker, arrive)

    def answer(
        self, broker: BrokerId, number: int, value: bytes, offset: Offset | None, leader: BrokerId | None
    ) -> None:
        client = self.clients[number]
        self.network.send(broker, -1, lambda: client.answered(value, offset, leader))

    # The operator and the controller

    def _operate(self) -> None:
        self.at(self.now_ms + _OPERATOR_MS, self._operate)
        for group in self.groups:
            group.operate()

    def _control(self) -> None:
        self.at(self.now_ms + _CONTROLLER_MS, self._control)
        self.controller.look()

    def elected(self, partition: PartitionId, leader: ReplicaId) -> None:
        for group in self.groups:
            if group.partition == partition:
                group.elected(leader)

    def started(self, machine: Machine) -> None:
        if self.swarm.mode == "isr":
            self._beat(machine, machine.life)

    def _beat(self, machine: Machine, life: int) -> None:
        """Say that it is alive; hear what the controller says."""
        if not machine.is_up or machine.life != life:
            return
        self.at(self.now_ms + _HEARTBEAT_MS, lambda: self._beat(machine, life))
        if self.now_ms < machine.paused_until_ms:
            return
        was_clean = machine.was_clean
        replicas = {host.partition: host.id for host in machine.hosts.values() if host.works}
        names = {group.partition: group.host(machine.broker).id for group in self.groups}
        starts = machine.starts

        def heard() -> None:
            if self.controller.is_old_copy(machine.broker, life, starts):
                self.network.send(CONTROLLER, machine.broker, lambda: self._found_out(machine, life))
                return
            self.controller.heard(machine.broker, life, replicas, names, was_clean=was_clean)
            self._reply(machine, life)

        self.network.send(machine.broker, CONTROLLER, heard)

    def _reply(self, machine: Machine, life: int) -> None:
        said = self.controller.reply_to(machine.broker, life)
        if said is None:
            return
        broker_epoch, partitions = said

        def deliver() -> None:
            if machine.life != life or not machine.is_up:
                return
            machine.starts = (life,)
            machine.is_counted = True
            for group in self.groups:
                group.registered(machine.broker, life)
            for host in list(machine.hosts.values()):
                state = partitions.get(host.partition)
                if host.is_up and state is not None:
                    host.assign(broker_epoch, state)

        self.network.send(CONTROLLER, machine.broker, deliver)

    def _found_out(self, machine: Machine, life: int) -> None:
        """Its disk is an old copy: it begins again as somebody else, with what the copy has. So do the replicas of
        topics that it does not know any more, and not those that are newer than the copy: they have lost nothing."""
        if machine.life == life and machine.is_up:
            machine.crash(loses=False)
            machine.starts = tuple(range(life))  # under a new name it is asked for none of them
            for group in self.groups:
                if group.host(machine.broker).is_put_back:
                    group.rename(group.host(machine.broker))
            self._start_later(machine, _HEARTBEAT_MS)

    # The end

    def missing(self) -> str | None:
        """What a whole cluster would have and this one has not."""
        if any(client.value is not None for client in self.clients):
            return "a client waits for its record"
        if not self.consumer.has_read_everything:
            return f"the consumer has only come to {self.consumer.offset}"
        return next((missing for group in self.current if (missing := group.missing()) is not None), None)
