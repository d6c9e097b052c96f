"""What all clients do: find brokers, ask them, give up after a while, and try again."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from zurau.ids import BrokerId, Epoch, TopicPartition
from zurau.pending import Pending
from zurau.records.builder import NewRecord, build_batch
from zurau.records.compression import Compression
from zurau.simulation.brokers.connection import Connection, Unreachable
from zurau.simulation.brokers.history import value_of
from zurau.simulation.brokers.invariants import broken
from zurau.simulation.world import BEGINNING_MS
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from zurau.wire.kafka.schema import Message

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster

#: What a client meets when brokers stop, start, lead no more or have no room, and what it tries again after. Fewer than
#: Kafka's clients would: the others are findings here.
#: In a cluster: there are too few brokers just now, or one that has not heard of a topic yet.
MEANWHILE = (ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
RETRIABLE = frozenset({
    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR,
    ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_CONTROLLER,
    ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.OFFSET_NOT_AVAILABLE,
})  # fmt: skip


class Client:
    """Runs as a coroutine until the cluster says that it is enough."""

    #: What it gives up is not done later, behind its back: so it can say what has to be true.
    ends_abruptly = False

    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        self.cluster = cluster
        self.history = cluster.history
        self.swarm = cluster.swarm
        self.name = name
        self.chance = Random(f"client {cluster.swarm.seed} {name}")
        self.is_done = False
        self._connections: dict[BrokerId, Connection] = {}
        self._leaders: dict[TopicPartition, BrokerId] = {}
        #: The latest that it has heard of, as all clients remember: a broker that is behind names an older leader.
        self._leader_epochs: dict[tuple[bytes, int], Epoch] = {}
        #: Topics by name; and those that it knows to be gone, which a broker that is behind still shows.
        self._topic_ids: dict[str, bytes] = {}
        self._gone_ids: set[bytes] = set()

    def begin(self) -> None:
        self.cluster.drive(self._live())

    async def _live(self) -> None:
        await self.run()
        self.is_done = True

    async def run(self) -> None:
        raise NotImplementedError

    # Asking

    async def ask(self, broker: BrokerId, request: Message, version: int, *, timeout_ms: float | None = None) -> Any:
        """Raises `Unreachable` when no answer comes in time."""
        return await self.awaited(self.ask_later(broker, request, version), broker, timeout_ms)

    def ask_later(self, broker: BrokerId, request: Message, version: int, *, has_answer: bool = True) -> Pending[Any]:
        connection = self._connections.get(broker)
        if connection is None or connection.is_broken:
            connection = self._connections[broker] = Connection(self.cluster, self.name, self.cluster.node(broker))
        return connection.ask(request, version, has_answer=has_answer)

    async def awaited(self, response: Pending[Any], broker: BrokerId, timeout_ms: float | None = None) -> Any:
        """Or the end of patience, which ends the connection too."""
        connection = self._connections[broker]
        patience_ms = self.swarm.request_timeout_ms if timeout_ms is None else timeout_ms

        def give_up() -> None:
            if not response.is_done:
                connection.close(abruptly=self.ends_abruptly)

        self.cluster.agenda.after(patience_ms, give_up)
        try:
            return await response
        except Unreachable:
            self._leaders.clear()
            raise

    async def sleep(self, duration_ms: float) -> None:
        woken: Pending[None] = Pending()
        self.cluster.agenda.after(duration_ms, lambda: woken.resolve(None))
        await woken

    async def think(self) -> None:
        await self.sleep(self.chance.expovariate(1 / self.swarm.think_ms))

    async def rest(self) -> None:
        """Before something is tried again."""
        await self.sleep(10 + self.chance.random() * 90)

    @property
    def goes_on(self) -> bool:
        return not self.cluster.is_calm

    # Finding

    def any_broker(self) -> BrokerId:
        return self.chance.choice(self.cluster.members).broker_id

    async def leader_of(self, name: TopicPartition) -> BrokerId:
        """Asks around until somebody knows."""
        while name not in self._leaders:
            try:
                await self._learn_leaders(name.topic)
            except Unreachable:
                await self.rest()
            else:
                if name not in self._leaders:
                    await self.rest()
        return self._leaders[name]

    async def _learn_leaders(self, topic: str) -> None:
        wanted = [MetadataRequestTopic(name=topic)]
        answer = await self.ask(self.any_broker(), MetadataRequest(topics=wanted, allow_auto_topic_creation=False), 12)
        for found in answer.topics:
            if found.topic_id in self._gone_ids:
                continue
            self._topic_ids[topic] = found.topic_id
            for partition in found.partitions:
                key = (found.topic_id, partition.partition_index)
                is_latest = partition.leader_epoch >= self._leader_epochs.get(key, -1)
                if partition.leader_id > 0 and partition.error_code == ErrorCode.NONE and is_latest:
                    self._leader_epochs[key] = partition.leader_epoch
                    self._leaders[TopicPartition(topic, partition.partition_index)] = BrokerId(partition.leader_id)

    def topic_id(self, topic: str) -> bytes:
        """Of the one that has this name now, as far as this client knows."""
        return self._topic_ids[topic]

    def forget_leader(self, name: TopicPartition) -> None:
        self._leaders.pop(name, None)

    def forget_topic(self, topic: str) -> None:
        """It is deleted: whatever has this name from now on is another."""
        self._gone_ids.add(self._topic_ids.pop(topic))
        self._leaders = {name: leader for name, leader in self._leaders.items() if name.topic != topic}

    def require_retriable(self, code: int, what: str, of: BrokerId | None = None) -> None:
        if code in MEANWHILE and not self.cluster.is_lone:
            return
        if code == ErrorCode.CORRUPT_MESSAGE and of is not None and self.cluster.told_of_damage(of):
            return
        if code not in RETRIABLE:
            broken("NothingUnexpected", f"{self.name} is told {ErrorCode(code).name} for {what}")

    # Making records

    def values(self, first: int, count: int) -> list[bytes]:
        """No other values are like these; some are long."""
        return [value_of(self.name, number, self._padding()) for number in range(first, first + count)]

    def _padding(self) -> bytes:
        return self.chance.randbytes(self.chance.choice([0, self.chance.randint(0, self.swarm.longest)]))

    def batch(self, values: list[bytes | None], key: bytes | None = None, **facts: Any) -> bytes:
        now_ms = BEGINNING_MS + int(self.cluster.agenda.now_ms)
        records = [NewRecord(key, value, timestamp=now_ms) for value in values]
        compression = self.chance.choice([Compression.NONE, Compression.NONE, *Compression])
        return bytes(build_batch(records, compression=compression, **facts))
