"""Three whole brokers that are told of each other, in one world: clients ask in real frames, brokers talk in frames."""

from __future__ import annotations

from typing import Any

import msgspec

from zurau.api.kafka.dispatch import answer
from zurau.broker.broker import Broker
from zurau.broker.identity import Identity
from zurau.broker.settings import BrokerSettings
from zurau.ids import BrokerId, TopicPartition
from zurau.log.settings import LogSettings
from zurau.machines.groups.settings import GroupSettings
from zurau.pending import Pending, start
from zurau.ports import Handshake
from zurau.simulation.broker import CLIENT
from zurau.simulation.client import SimulatedClient
from zurau.simulation.disk import SimulatedDisk
from zurau.simulation.world import VirtualClock, make_world
from zurau.wire.kafka.frames import RequestHeader, decode_response, encode_request
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

IDS = tuple(map(BrokerId, (1, 2, 3)))


#: How what says who votes begins: a list of up to three pairs.
VOTERS = (b"\x91\x92", b"\x92\x92", b"\x93\x92")


class Node:
    """A broker on a disk that stays."""

    def __init__(self, cluster: Cluster, broker_id: BrokerId) -> None:
        self.cluster = cluster
        self.id = broker_id
        self.clock = cluster.clock
        self.disk = SimulatedDisk(broker_id)
        self.directory_id = bytes([broker_id] * 16)
        self.starts = 0
        #: Why it would have ended its process.
        self.failures: list[BaseException] = []
        self.broker: Broker | None = None
        self.start()

    def start(self) -> None:
        self.starts += 1
        world = make_world(self.disk, self.clock, self.id * 1000 + self.starts, self.disk.boot_id)
        world = msgspec.structs.replace(world, fail=self.failures.append)
        identity = Identity(self.id, "cluster", self.directory_id, is_founder=self.directory_id == bytes([1] * 16))
        self.broker = Broker(
            world,
            identity,
            BrokerSettings(offsets_topic_num_partitions=2, broker_rack=f"rack-{self.id}"),
            LogSettings(),
            GroupSettings(),
            others=tuple(other for other in IDS if other != self.id),
        )
        self.broker.use_peers(self)
        self.opened = start(self.broker.open())

    def leads(self, name: TopicPartition) -> bool:
        return (
            self.broker is not None and name in self.broker.partitions and self.broker.partitions[name].is_established
        )

    def send(self, to: BrokerId, frame: Any) -> None:
        self.cluster.carry(self, to, b"".join(frame)[4:])

    def lose_power(self) -> None:
        self.stop_timers()
        self.disk.crash()

    def lose_disk(self) -> None:
        """Its process too. What comes back has another one, which is empty."""
        self.lose_power()
        self.disk = SimulatedDisk(self.id + 32)
        self.directory_id = bytes([self.id + 32] * 16)

    def stop_timers(self) -> None:
        """As a process that is gone."""
        broker, self.broker = self.broker, None
        for partition in broker.partitions.values():
            partition.shell.stop()
        broker.replication.stop()
        broker.heartbeats.close()
        broker._voter_changes.close()
        broker.leader_moves.close()
        broker._growth.close()

    def ask(self, request, version: int) -> Pending[Any]:
        header = RequestHeader(request.api_key, version, 1, "test")
        frame = memoryview(bytearray(b"".join(encode_request(header, request))))[4:]
        response: Pending[Any] = Pending()
        answer(frame, CLIENT, self.broker)[1].then(
            lambda pieces: response.resolve(decode_response(header, memoryview(b"".join(pieces.result()))[4:]))
        )
        return response

    def wait(self, pending: Pending[Any]) -> Any:
        for _ in range(20_000):
            if pending.is_done:
                return pending.result()
            self.clock.advance(1)
        raise TimeoutError

    def tell(self, request, version: int) -> Any:
        return self.wait(self.ask(request, version))


class Cluster:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.cut_off: set[BrokerId] = set()
        self.nodes: dict[BrokerId, Node] = {}
        for broker_id in IDS:
            self.nodes[broker_id] = Node(self, broker_id)

    def carry(self, sender: Node, to: BrokerId, frame: bytes) -> None:
        def arrive() -> None:
            target = self.nodes.get(to)
            if target is not None and target.broker is not None and not {to, sender.id} & self.cut_off:
                target.broker.received(sender.id, memoryview(frame))

        self.clock.call_later(1, arrive)

    def connect_all(self) -> None:
        """Everybody hears that everybody else can be reached, as after a start."""
        for node in self.nodes.values():
            for other in IDS:
                if node.broker is not None and other != node.id:
                    node.broker.connected(
                        Handshake(other, "cluster", bytes([other] * 16), bytes(16), is_metadata_empty=False)
                    )

    def pass_time(self, duration_ms: int = 5000) -> None:
        self.clock.advance(duration_ms)

    def wish(self, name: str, replication_factor: int = 3, partitions: int = 1, **configs: str) -> CreateTopicsRequest:
        wanted = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replication_factor, configs=wanted
        )
        return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)

    def create(self, name: str, replication_factor: int = 3, at: int = 1, **configs: str) -> int:
        response = self.nodes[at].tell(self.wish(name, replication_factor, **configs), 5)
        return response.topics[0].error_code

    def leader_of(self, topic: str) -> Node:
        name = TopicPartition(topic, 0)
        (leader,) = [node for node in self.nodes.values() if node.id not in self.cut_off and node.leads(name)]
        return leader

    def produce(self, topic: str, *values: bytes) -> int:
        client = SimulatedClient(self.leader_of(topic))
        client.broker.clock = self.clock
        return client.produce(topic, client.batch(*values)).error_code

    def read(self, topic: str) -> list[bytes]:
        """As clients do: what says who votes is passed over."""
        client = SimulatedClient(self.leader_of(topic))
        values = client.read(topic)
        return [value for value in values if not value.startswith(VOTERS)]
