"""One world from one seed: brokers, clients, faults; trouble, then calm, and then everything must be there."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from functools import partial
from random import Random
from typing import Any

from zurau.ids import BrokerId, Offset, TopicPartition, id_text
from zurau.machines.controller.names import METADATA_TOPIC, OFFSETS_TOPIC
from zurau.pending import Pending, start
from zurau.replica.core.identity import PartitionId
from zurau.replica.quorum.replica import Replica
from zurau.simulation.brokers.agenda import Agenda
from zurau.simulation.brokers.checkers.checks import Checks
from zurau.simulation.brokers.clients.client import Client
from zurau.simulation.brokers.clients.consumers import Consumer
from zurau.simulation.brokers.clients.facts import FactTeller
from zurau.simulation.brokers.clients.groups import Committer
from zurau.simulation.brokers.clients.members import GroupBook, Member
from zurau.simulation.brokers.clients.operators import Operator
from zurau.simulation.brokers.clients.producers import IdempotentProducer, PlainProducer
from zurau.simulation.brokers.clients.topics import Administrator, FleetingTopics, ShownTopics, Trimmer, Watcher
from zurau.simulation.brokers.clients.verifier import Verifier
from zurau.simulation.brokers.faults import Fault
from zurau.simulation.brokers.history import History
from zurau.simulation.brokers.invariants import broken
from zurau.simulation.brokers.network import Network
from zurau.simulation.brokers.node import SimulatedNode
from zurau.simulation.brokers.swarm import Swarm
from zurau.simulation.brokers.trace import Trace
from zurau.simulation.brokers.watch import Watch
from zurau.simulation.peers import PeerNetwork
from zurau.simulation.searching import Violation

ORDERS, SHORT, FACTS, WIDE = "orders", "short", "facts", "wide"
WIDE_PARTITIONS = 6
#: How long a cluster may take to become whole when nothing goes wrong any more.
CALM_MS = 60_000
_LOOK_MS = 100
#: Of a partition that nobody who is up knows.
NEVER: Offset = 1 << 62


class SimulatedCluster:
    def __init__(self, swarm: Swarm, faults: Sequence[Fault], *, keeps_lines: bool = False) -> None:
        self.swarm = swarm
        self.agenda = Agenda()
        self.trace = Trace(self.agenda, keeps_lines=keeps_lines)
        self.history = History(self.trace, self._committed_upto)
        self.network = Network(swarm, self.agenda)
        self.peer_network = PeerNetwork(self.agenda, Random(f"peers {swarm.seed}"))
        self.peer_network.delay_ms, self.peer_network.straggling = swarm.delay_ms, swarm.straggling
        self.watch = Watch()
        self.checks = Checks(self)
        #: By each broker: others may hear of the same thing a little later.
        self.shown = {BrokerId(number): ShownTopics() for number in range(1, swarm.brokers + 1)}
        self.producer_ids: set[int] = set()
        #: What brokers asked people to report.
        self.reported: list[str] = []
        self.nodes = [SimulatedNode(self, BrokerId(number)) for number in range(1, swarm.brokers + 1)]
        self.is_calm = False
        self.clients: list[Client] = []
        self.operator = Operator(self)
        self._violation: Violation | None = None
        self._has_lost_disk = False
        #: Whose disk has changed something that it holds.
        self.damaged: SimulatedNode | None = None
        self._faults = faults

    def node(self, broker: BrokerId) -> SimulatedNode:
        return self.nodes[broker - 1]

    @property
    def members(self) -> list[SimulatedNode]:
        """Those that have not been taken away."""
        return [node for node in self.nodes if not node.is_retired]

    def add_node(self) -> None:
        """One more machine, with an empty disk."""
        node = SimulatedNode(self, BrokerId(len(self.nodes) + 1))
        self.nodes.append(node)
        self.shown[node.broker_id] = ShownTopics()
        for each in self.nodes:
            each.tell_addresses()
        node.start()

    @property
    def is_lone(self) -> bool:
        """There is one broker. Nobody is behind it, and what it says is the latest at any time."""
        return len(self.nodes) == 1

    def some_leader(self, number: int) -> SimulatedNode | None:
        """Who leads one of the partitions that everybody uses, or the metadata."""
        leaders = [
            node
            for node in self.nodes
            if node.broker is not None
            for partition in node.broker.partitions.values()
            if partition.leads and partition.name.topic in (ORDERS, SHORT, METADATA_TOPIC)
        ]
        return leaders[number % len(leaders)] if leaders else None

    def may_lose_disk(self, node: SimulatedNode) -> bool:
        """A replicated log survives the loss of one disk, unless that was the last one in sync. Only brokers that know
        everything are asked."""
        serving = [each.broker for each in self.nodes if each.broker is not None]
        if self._has_lost_disk or len(serving) < len(self.nodes):
            return False
        alone = any(
            [replica.broker for replica in partition.in_sync] == [node.broker_id]
            for broker in serving
            for _, partition in broker.image.partitions()
        )
        # Of two replicas that vote, one alone decides nothing, and cannot replace the other either.
        is_young = any(
            len(shell.core.membership.voters) < 3
            for broker in serving
            for shell in broker.replication.shells.values()
            if isinstance(shell.core, Replica)
        )
        self._has_lost_disk = not alone and not is_young
        return self._has_lost_disk

    def logs_on(self, node: SimulatedNode) -> list[str]:
        """Files of partitions that everybody uses, with something in them that is safe."""
        directories = [each for each in node.disk.list_directory("") if each.startswith((f"{ORDERS}-", f"{SHORT}-"))]
        paths = [f"{each}/{name}" for each in directories for name in node.disk.list_directory(each)]
        return [path for path in paths if path.endswith(".log") and node.disk.safe_bytes(path)]

    def told_of_damage(self, broker: BrokerId) -> bool:
        """A client was, by this broker, and tells its operator, who starts it again when nothing else is wrong: it
        then begins anew what is damaged. Whether there is any."""
        node = self.node(broker)
        if self.is_calm and node is self.damaged:
            node.stop(node.start)
        return node is self.damaged

    def is_compacted(self, partition: PartitionId) -> bool:
        """Whether its batches may be others on different brokers; also if nobody knows it any more."""
        known = [
            node.broker.image.topics_by_id[partition.topic_id].name
            for node in self.nodes
            if node.broker is not None and partition.topic_id in node.broker.image.topics_by_id
        ]
        return not known or known[0] in (FACTS, OFFSETS_TOPIC)

    def partition_name(self, partition: PartitionId) -> str:
        """As people know it, if a broker that is up knows it."""
        for node in self.nodes:
            topics = {} if node.broker is None else node.broker.image.topics_by_id
            if partition.topic_id in topics:
                return f"{topics[partition.topic_id].name}-{partition.partition}"
        return f"{id_text(partition.topic_id)}-{partition.partition}"

    def _committed_upto(self, name: TopicPartition) -> Offset:
        """By whichever replica is furthest."""
        brokers = (node.broker for node in self.nodes if node.broker is not None)
        topics = (broker.image.topics[name.topic] for broker in brokers if name.topic in broker.image.topics)
        found = [PartitionId(topic.topic_id, name.partition) for topic in topics][:1]
        return self.checks.committed_upto(found[0], self.swarm.log_settings.min_insync_replicas) if found else NEVER

    # Its life

    def run(self) -> None:
        """Raises `Violation`, or whatever a broker did not expect itself."""
        try:
            for node in self.nodes:
                node.start()
            founder = Founder(self)
            founder.begin()
            self._wait_for([founder], "there are no topics")
            self._begin_clients()
            self._look()
            for fault in self._faults:
                self.agenda.after(fault.at_ms, partial(self._strike, fault))
            self._run_until(self.agenda.now_ms + self.swarm.trouble_ms)
            self._calm_down()
            self._wait_for(self.clients, "clients have not come to an end")
            verifier = Verifier(self)
            verifier.begin()
            self._wait_for([verifier], "not everything can be read and written")
            self._look_after_damage()
            self.checks.idle.rest(self._run_until)
        finally:
            for node in self.nodes:
                node.kill()

    def _look_after_damage(self) -> None:
        """A replica that is stopped says so in the log, and its operator starts the broker again, as it says."""
        broker = None if self.damaged is None else self.damaged.broker
        if broker is not None and any(partition.is_broken for partition in broker.partitions.values()):
            assert self.damaged is not None
            self.damaged.stop(self.damaged.start)

    def _begin_clients(self) -> None:
        swarm = self.swarm
        orders = [TopicPartition(ORDERS, index) for index in range(swarm.partitions)]
        short = [TopicPartition(SHORT, 0)]
        book = GroupBook(WIDE, WIDE_PARTITIONS)
        self.clients = [
            *(IdempotentProducer(self, number, orders[number % len(orders)]) for number in range(swarm.producers)),
            PlainProducer(self, 0, [*orders, *short]),
            *(Consumer(self, number, [*orders, *short]) for number in range(swarm.consumers)),
            Committer(self, 0, WIDE, WIDE_PARTITIONS),
            *(Member(self, number, book) for number in range(swarm.members)),
            FactTeller(self, TopicPartition(FACTS, 0)),
            FleetingTopics(self, 0),
            Trimmer(self, short),
            Watcher(self, ORDERS),
            *([self.operator] if swarm.operation_kinds else []),
        ]
        for client in self.clients:
            client.begin()

    def _look(self) -> None:
        """Now and then, at what should have happened."""
        try:
            self.checks.look()
        except Violation as violation:
            self.found(violation)
        self.agenda.after(_LOOK_MS, self._look)

    def drive(self, coroutine: Coroutine[Any, None, None]) -> None:
        """Run a client; what it finds ends the run."""
        start(coroutine).then(self._ended)

    def _ended(self, outcome: Pending[None]) -> None:
        if outcome.error is not None:
            self._raise(outcome.error)

    def found(self, violation: Violation) -> None:
        """By a checker, in the middle of something: the first one counts."""
        if self._violation is None:
            self._violation = violation
            self._raise(violation)

    def unexpected(self, what: str, error: BaseException) -> None:
        """A defect showed where nobody would see it."""
        self.trace.note(f"unexpected: {what}")
        self._raise(error)

    def _raise(self, error: BaseException) -> None:
        def throw() -> None:
            raise error

        self.agenda.at(self.agenda.now_ms, throw)

    # Trouble and calm

    def _run_until(self, until_ms: float) -> None:
        self.agenda.run_until(until_ms)
        if self.reported:
            broken("NothingUnexpected", self.reported[0])

    def _strike(self, fault: Fault) -> None:
        if not self.is_calm:
            self.trace.fault(str(fault))
            fault.strike(self, self.nodes[fault.broker - 1])

    def _calm_down(self) -> None:
        self.trace.fault("calm")
        self.is_calm = True
        self.network.calm_down()
        self.peer_network.calm_down()
        for node in self.nodes:
            node.calm_down()

    def _wait_for(self, clients: Sequence[Client], otherwise: str) -> None:
        deadline_ms = self.agenda.now_ms + CALM_MS
        while not all(client.is_done for client in clients):
            if self.agenda.now_ms > deadline_ms:
                waiting = ", ".join(client.name for client in clients if not client.is_done)
                broken("BecomesWhole", f"after {CALM_MS} ms without faults {otherwise}: {waiting}")
            self._run_until(self.agenda.now_ms + _LOOK_MS)


class Founder(Administrator):
    """Makes the topics that everybody uses."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster, "founder")

    async def run(self) -> None:
        compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
        compacted["delete.retention.ms"] = self.chance.choice(["0", "50", "2000"])
        mode: dict[str, str] = {} if self.cluster.is_lone else {"replication.mode": self.swarm.mode}
        await self.create(ORDERS, self.swarm.partitions, mode)
        await self.create(SHORT, 1, mode)
        await self.create(FACTS, 1, compacted | mode)
        await self.create(WIDE, WIDE_PARTITIONS, {})
