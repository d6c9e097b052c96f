"""One world from one seed: nodes, a network, partitions, clients, faults, and an agenda of what happens when.

Partitions share nodes, sessions and bad luck; each of them is a `ReplicaGroup` of its own otherwise. A topic that is
deleted is made again under the same name, and nodes hear of both when they hear of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from random import Random

from zurau.ids import BrokerId, Offset, TopicId
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.messages import Fetched
from zurau.replica.session.messages import SessionRequest, SessionResponse
from zurau.simulation.cluster.checkers import Checker
from zurau.simulation.cluster.clients import Client
from zurau.simulation.cluster.consumers import Consumer
from zurau.simulation.cluster.controller import CONTROLLER, Controller
from zurau.simulation.cluster.faults import Fault
from zurau.simulation.cluster.host import Host
from zurau.simulation.cluster.in_sync_group import InSyncGroup
from zurau.simulation.cluster.network import Network
from zurau.simulation.cluster.node import Node
from zurau.simulation.cluster.recovery_checkers import FailedReplicasAreNoticed, RecoveryKeepsWhatWasFlushed
from zurau.simulation.cluster.replica_group import ReplicaGroup
from zurau.simulation.cluster.session_checkers import SESSION_CHECKERS, SessionChecker
from zurau.simulation.cluster.swarm import Mode, Swarm, calm
from zurau.simulation.cluster.transcript import Transcript
from zurau.simulation.searching import Violation

GROUPS: dict[Mode, type[ReplicaGroup]] = {"quorum": ReplicaGroup, "isr": InSyncGroup}
#: How long a cluster may take to become whole when nothing goes wrong any more.
CALM_MS = 30_000
_OPERATOR_MS = 300
_CONTROLLER_MS = 50
_HEARTBEAT_MS = 60
_LOOK_MS = 100


def batch_count(it: SessionRequest | SessionResponse) -> int:
    return sum(len(message.batches) for _, message in it.messages if isinstance(message, Fetched))


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
        self._to_pump: list[Node] = []
        self.rng = Random(f"network {swarm.mode} {swarm.seed}")
        self.network = Network(swarm, self.rng, self)
        self.broker_ids = tuple(BrokerId(number) for number in range(1, swarm.brokers + 1))
        self.nodes = [Node(self, broker) for broker in self.broker_ids]
        self.controller = Controller(self)
        #: Those that some node still has, and among them, by number, those that clients mean.
        self.groups: list[ReplicaGroup] = []
        self.current: list[ReplicaGroup] = []
        self._group_count = 0
        for number in range(swarm.partitions):
            self.current.append(self._create(number))
        self.session_checkers: list[SessionChecker] = [checker(self) for checker in SESSION_CHECKERS]
        self.clients = [Client(self, number) for number in range(swarm.clients)]
        self.consumer = Consumer(self)
        for fault in faults:
            self.at(fault.at_ms, lambda fault=fault: self._strike(fault))  # type: ignore[misc]
        self.is_calm = False

    # The agenda

    def at(self, at_ms: float, act: Callable[[], None]) -> None:
        self._agenda_count += 1
        heapq.heappush(self._agenda, (at_ms, self._agenda_count, act))

    def at_in_incarnation(self, host: Host, at_ms: float, act: Callable[[], object]) -> None:
        """Unless the replica is stopped before."""
        incarnation = host.incarnation
        self.at(at_ms, lambda: act() if host.incarnation == incarnation and host.is_up else None)  # type: ignore[arg-type]

    def in_trouble(self, at_ms: float, act: Callable[[], None]) -> None:
        """What a fault does later; nothing when it is calm by then."""
        self.at(at_ms, lambda: None if self.is_calm else act())

    def run(self) -> None:
        """Trouble, calm, and a while in which nothing happens. Raises `Violation`."""
        for group in self.groups:
            for host in group.hosts:
                self.node(host.broker).place(host)
        for node in self.nodes:
            node.start()
        self._look()
        for client in self.clients:
            client.think()
        self.consumer.poll()
        self.at(_OPERATOR_MS, self._operate)
        if self.swarm.mode == "isr":
            self._control()
        self.run_until(self.swarm.trouble_ms)
        self._calm_down()
        calm_ms = CALM_MS + self._catch_up_ms()
        deadline_ms = self.now_ms + calm_ms
        while self.missing() is not None and self.now_ms < deadline_ms:
            self.run_until(self.now_ms + _LOOK_MS)
        missing = self.missing()
        if missing is not None:
            raise Violation("BecomesWhole", f"{missing} after {calm_ms} ms without faults")
        for checker in self.session_checkers:
            checker.idle()

    def _catch_up_ms(self) -> int:
        """How much longer it may take where links are slow: somebody may have everything to fetch, over one of them."""
        batches = sum(max(len(host.disk.seen.items) for host in group.hosts) for group in self.current)
        return 2 * self.swarm.batch_ms * batches

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

    # Between nodes

    def node(self, broker: int) -> Node:
        return self.nodes[broker - 1]

    def pump_soon(self, node: Node) -> None:
        """When everything that happens in this moment has happened: it may all go into one message."""
        if node not in self._to_pump:
            self._to_pump.append(node)

    def say(self, node: Node, to: BrokerId, it: SessionRequest | SessionResponse) -> None:
        for checker in self.session_checkers:
            checker.see(node, to, it)
        target, sender = self.node(to), node.broker
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

    def group_of(self, number: int) -> ReplicaGroup:
        """Some partition: faults choose by a number that was drawn before there were any."""
        return self.current[number % len(self.current)]

    def crash(self, node: Node, down_ms: float, *, loses: bool = True) -> None:
        if not node.is_up:
            return
        # Whoever counts on a broker takes this for a loss of all there, of topics that it has not heard of as well.
        counted = [group.host(node.broker) for group in self.groups]
        loses = loses and all(host.group.may_lose(host) for host in counted)
        for host in counted:
            if loses:
                host.group.loses(host)
        hosts = list(node.hosts.values())
        node.crash(loses=loses)
        for host in hosts:
            self.note(f"!! {host.name} stops; its disk has {host.disk.view().position}")
        self._start_later(node, down_ms)

    def _start_later(self, node: Node, down_ms: float) -> None:
        incarnation = node.incarnation
        self.at(self.now_ms + down_ms, lambda: self._start(node, incarnation))

    def _start(self, node: Node, incarnation: int) -> None:
        if not node.is_up and node.incarnation == incarnation:
            self.note(f"!! {node.broker} starts")
            node.start()

    def wipe(self, node: Node, down_ms: float) -> None:
        """A new disk, unless that would be more than anybody can recover from."""
        for host in self._lose_disks(node, down_ms):
            host.group.replace_disk(host)
            node.was_clean = False

    def roll_back(self, node: Node, down_ms: float) -> None:
        """An old copy in the place of the disk, under the same condition. It was made of a node that was stopped in
        good order."""
        for host in self._lose_disks(node, down_ms):
            host.group.put_back(host)
            node.starts = node.old_starts

    def _lose_disks(self, node: Node, down_ms: float) -> list[Host]:
        """Whose disks are gone, if so many may be."""
        hosts = [group.host(node.broker) for group in self.groups]
        if not node.is_up or not all(host.group.may_wipe(host) for host in hosts):
            return []
        for host in hosts:
            host.group.loses(host, disk=True)
        node.crash(loses=False)
        self._start_later(node, down_ms)
        return hosts

    def cut(self, pairs: Sequence[tuple[int, int]], duration_ms: float) -> None:
        for pair in pairs:
            self.network.cut(pair)
            self.at(self.now_ms + duration_ms, lambda pair=pair: self.network.mend(pair))  # type: ignore[misc]

    def reset(self, one: Node, other: Node, notice_ms: tuple[float, float]) -> None:
        """What is under way between them is lost; each side notices when it notices."""
        for each, peer, delay_ms in ((one, other.broker, notice_ms[0]), (other, one.broker, notice_ms[1])):
            self.network.reset((each.broker, peer))
            self.in_trouble(self.now_ms + delay_ms, lambda each=each, peer=peer: each.lose_connection(peer))  # type: ignore[misc]

    def _calm_down(self) -> None:
        self.note("!! calm")
        self.is_calm = True
        self.network.calm_down(calm(self.swarm))
        self.controller.calm_down()
        for node in self.nodes:
            node.paused_until_ms = self.now_ms
            self.pump_soon(node)
            node.slow_flush_ms = 0
            node.is_full = node.flush_fails = False
            node.crash_at = None
            if node.is_up and any(host.is_broken for host in node.hosts.values()):
                node.crash(loses=False)
            for group in list(self.groups):
                self._learn(node, group)
            if not node.is_up:
                node.start()
        for client in self.clients:
            client.is_done = True

    # Topics

    def _create(self, number: int) -> ReplicaGroup:
        self._group_count += 1
        partition = PartitionId(TopicId(self._group_count.to_bytes(16, "big")), number)
        group = GROUPS[self.swarm.mode](self, partition)
        self.groups.append(group)
        return group

    def recreate(self, number: int) -> None:
        """The topic is deleted and made again; nodes hear of it one after the other."""
        old = self.current[number]
        old.is_deleted = True
        new = self.current[number] = self._create(number)
        for node in self.nodes:
            for group in (old, new):
                self._hear_of(node, group, self.now_ms + self.rng.random() * 1500)

    def _hear_of(self, node: Node, group: ReplicaGroup, at_ms: float) -> None:
        def heard() -> None:
            if not node.is_up or self.now_ms < node.paused_until_ms:
                self._hear_of(node, group, max(self.now_ms + 50, node.paused_until_ms))
            else:
                self._learn(node, group)

        if not self.is_calm:
            self.at(at_ms, heard)

    def _learn(self, node: Node, group: ReplicaGroup) -> None:
        host = group.host(node.broker)
        if group.is_deleted:
            node.remove(host)
            host.is_removed = True
            if group in self.groups and all(each.is_removed for each in group.hosts):
                self.groups.remove(group)
                group.forget()
        elif host.partition not in node.hosts:
            node.place(host)

    # What clients ask

    def ask_write(self, client: Client, broker: BrokerId, value: bytes) -> None:
        node = self.node(broker)

        def arrive() -> None:
            host = node.host_of(client.partition)
            if host is not None and host.is_up and client.means(host.partition.topic_id):
                host.service.offer(client.number, value)
            elif node.is_up:
                self.answer(node.broker, client.number, value, None, None)

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

    def started(self, node: Node) -> None:
        if self.swarm.mode == "isr":
            self._beat(node, node.incarnation)

    def _beat(self, node: Node, incarnation: int) -> None:
        """Say that it is alive; hear what the controller says."""
        if not node.is_up or node.incarnation != incarnation:
            return
        self.at(self.now_ms + _HEARTBEAT_MS, lambda: self._beat(node, incarnation))
        if self.now_ms < node.paused_until_ms:
            return
        was_clean = node.was_clean
        replicas = {host.partition: host.id for host in node.hosts.values() if host.works}
        names = {group.partition: group.host(node.broker).id for group in self.groups}
        starts = node.starts

        def heard() -> None:
            if self.controller.is_old_copy(node.broker, incarnation, starts):
                self.network.send(CONTROLLER, node.broker, lambda: self._found_out(node, incarnation))
                return
            self.controller.heard(node.broker, incarnation, replicas, names, was_clean=was_clean)
            self._reply(node, incarnation)

        self.network.send(node.broker, CONTROLLER, heard)

    def _reply(self, node: Node, incarnation: int) -> None:
        said = self.controller.reply_to(node.broker, incarnation)
        if said is None:
            return
        broker_epoch, partitions = said

        def deliver() -> None:
            if node.incarnation != incarnation or not node.is_up:
                return
            node.starts = (incarnation,)
            node.is_counted = True
            for group in self.groups:
                group.registered(node.broker, incarnation)
            for host in list(node.hosts.values()):
                state = partitions.get(host.partition)
                if host.is_up and state is not None:
                    host.assign(broker_epoch, state)

        self.network.send(CONTROLLER, node.broker, deliver)

    def _found_out(self, node: Node, incarnation: int) -> None:
        """Its disk is an old copy: it begins again as somebody else, with what the copy has. So do the replicas of
        topics that it does not know any more, and not those that are newer than the copy: they have lost nothing."""
        if node.incarnation == incarnation and node.is_up:
            node.crash(loses=False)
            node.starts = tuple(range(incarnation))  # under a new name it is asked for none of them
            for group in self.groups:
                if group.host(node.broker).is_put_back:
                    group.rename(group.host(node.broker))
            self._start_later(node, _HEARTBEAT_MS)

    # The end

    def missing(self) -> str | None:
        """What a whole cluster would have and this one has not."""
        if any(client.value is not None for client in self.clients):
            return "a client waits for its record"
        if not self.consumer.has_read_everything:
            return f"the consumer has only come to {self.consumer.offset}"
        return next((missing for group in self.current if (missing := group.missing()) is not None), None)
