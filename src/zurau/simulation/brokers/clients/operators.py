"""Whoever looks after the cluster: moves partitions and leaders, drains brokers, and sees that all is done."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

from zurau.ids import BrokerId
from zurau.machines.controller.dynamic import DRAIN
from zurau.machines.controller.names import METADATA_TOPIC
from zurau.simulation.brokers.clients.topics import TIMEOUT_MS, Administrator, is_fleeting
from zurau.simulation.brokers.connection import Unreachable
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from zurau.wire.kafka.messages.describe_quorum import DescribeQuorumRequest, QuorumPartition, QuorumTopic
from zurau.wire.kafka.messages.elect_leaders import ElectLeadersRequest
from zurau.wire.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from zurau.wire.kafka.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from zurau.wire.kafka.messages.metadata import MetadataRequest
from zurau.wire.kafka.messages.unregister_broker import UnregisterBrokerRequest

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster
    from zurau.simulation.brokers.node import SimulatedNode

BROKER_RESOURCE = 4
SET, RESET = 0, 1
#: What an operator may be told besides what everybody may be told.
NOT_NOW = frozenset({
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, ErrorCode.ELECTION_NOT_NEEDED,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,  # a broker that has come and is not registered yet
})  # fmt: skip

Deed = Callable[[], Coroutine[Any, None, Any]]


class Operator(Administrator):
    """Does one thing after the other, and tries each of them once."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster, "operator")
        self._deeds: deque[Deed] = deque()
        self._drained: set[BrokerId] = set()
        self._leaving: SimulatedNode | None = None

    def asked(self, deed: Deed) -> None:
        self._deeds.append(deed)

    async def run(self) -> None:
        while self.goes_on:
            if self._deeds:
                await self._deeds.popleft()()
            else:
                await self.sleep(20)
        if self._leaving is not None:
            await self._decommission(self._leaving)
        for broker in sorted(self._drained):
            while not await self.undrain(broker):
                await self.rest()
        while await self._moves() != []:
            await self.rest()
        while not self._everything_is_in_its_place():
            await self.rest()

    # Partitions

    async def move(self, chance: Random) -> None:
        answer = await self._try(MetadataRequest(topics=None), 12)
        topics = [] if answer is None else [each for each in answer.topics if not is_fleeting(each.name)]
        if not topics:
            return
        topic = chance.choice(sorted(topics, key=lambda each: str(each.name)))
        brokers = self._staying()
        count = min(len(brokers), chance.choice([2, 3, 3, 3, len(brokers)]))
        await self._alter(topic.name, chance.randrange(len(topic.partitions)), chance.sample(brokers, count))

    async def cancel(self) -> None:
        for name, index in await self._moves() or []:
            await self._alter(name, index, None)

    async def _alter(self, topic: str, index: int, replicas: list[int] | None) -> None:
        wanted = ReassignableTopic(
            name=topic, partitions=[ReassignablePartition(partition_index=index, replicas=replicas)]
        )
        answer = await self._try(AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=[wanted]), 0)
        if answer is not None:
            code = answer.responses[0].partitions[0].error_code
            self._look_at(code, f"{topic}-{index} moves to {replicas}")

    async def _moves(self) -> list[tuple[str, int]] | None:
        """What is on its way, as one of the brokers knows; None if nobody says it."""
        answer = await self._try(ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS), 0)
        if answer is None or answer.error_code != ErrorCode.NONE:
            return None
        return [(topic.name, each.partition_index) for topic in answer.topics for each in topic.partitions]

    # Leaders

    async def elect(self) -> None:
        answer = await self._try(ElectLeadersRequest(timeout_ms=TIMEOUT_MS), 2)
        for topic in answer.replica_election_results if answer is not None else ():
            for each in topic.partition_result:
                self._look_at(each.error_code, f"an election of {topic.topic}-{each.partition_id}")

    async def drain(self, broker: BrokerId) -> bool:
        self._drained.add(broker)
        return await self._configure(broker, "leaders")

    async def undrain(self, broker: BrokerId) -> bool:
        return await self._configure(broker, None)

    async def _configure(self, broker: BrokerId, value: str | None) -> bool:
        config = AlterableConfig(name=DRAIN, config_operation=RESET if value is None else SET, value=value)
        resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name=str(broker), configs=[config])
        answer = await self._try(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        if answer is None:
            return False
        self._look_at(answer.responses[0].error_code, f"{broker} drains {value}")
        return bool(answer.responses[0].error_code == ErrorCode.NONE)

    # Brokers that go

    async def begin_decommission(self, node: SimulatedNode) -> None:
        """In the middle of trouble; it is done when that is over."""
        if self._leaving is None:
            self._leaving = node
            await self._configure(node.broker_id, "everything")
            await self._move_away(node.broker_id)

    async def _decommission(self, node: SimulatedNode) -> None:
        broker = node.broker_id
        while not await self._configure(broker, "everything"):
            await self.rest()
        while not await self._move_away(broker) or await self._moves() != []:
            await self.rest()
        while await self._votes(broker):
            await self.rest()
        while not await self._unregister(broker):
            await self.rest()
        self._drained.discard(broker)
        node.retire()

    async def _move_away(self, broker: BrokerId) -> bool:
        """Ask for what it has to be elsewhere. Whether it has nothing, and will not get anything."""
        answer = await self._try(MetadataRequest(topics=None), 12)
        if answer is None:
            return False
        held = [
            (topic.name, each.partition_index, each.replica_nodes)
            for topic in answer.topics
            for each in topic.partitions
            if broker in each.replica_nodes
        ]
        for name, index, replicas in held:
            others = [each for each in self._staying() if each not in replicas]
            await self._alter(name, index, [each for each in replicas if each != broker] + others[:1])
        return not held

    async def _votes(self, broker: BrokerId) -> bool:
        """Perhaps: until it is known that it does not."""
        topics = [QuorumTopic(topic_name=METADATA_TOPIC, partitions=[QuorumPartition(partition_index=0)])]
        answer = await self._try(DescribeQuorumRequest(topics=topics), 0)
        if answer is None or answer.error_code != ErrorCode.NONE:
            return True
        described = answer.topics[0].partitions[0]
        voters = [each.replica_id for each in described.current_voters]
        return described.error_code != ErrorCode.NONE or broker in voters

    async def _unregister(self, broker: BrokerId) -> bool:
        answer = await self._try(UnregisterBrokerRequest(broker_id=broker), 0)
        if answer is None:
            return False
        if answer.error_code not in (ErrorCode.NONE, ErrorCode.BROKER_ID_NOT_REGISTERED):
            self._look_at(answer.error_code, f"{broker} is forgotten")
            return False
        return True

    def _staying(self) -> list[int]:
        return [node.broker_id for node in self.cluster.members if node is not self._leaving]

    # All of it

    async def _try(self, request: Any, version: int) -> Any:
        try:
            return await self.ask(self.any_broker(), request, version)
        except Unreachable:
            return None

    def _look_at(self, code: int, what: str) -> None:
        self.history.trace.note(f"{self.name}: {what}: {ErrorCode(code).name}")
        if code not in NOT_NOW and code != ErrorCode.NONE:
            self.require_retriable(code, what)

    def _everything_is_in_its_place(self) -> bool:
        """Every broker has the replicas that it shall have, and no others."""
        for node in self.cluster.members:
            broker = node.broker
            if broker is None:
                return False
            wanted = {
                (topic.name, each.index)
                for topic in broker.image.topics.values()
                for each in topic.partitions
                if broker.broker_id in each.replicas
            }
            found = {tuple(name) for name in broker.partitions} - {tuple(broker.metadata.partition.name)}
            if wanted != found:
                return False
        return True
