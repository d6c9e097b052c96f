"""Those who commit offsets for a group, and look whether they are still there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from zurau.ids import BrokerId
from zurau.simulation.brokers.clients.client import Client
from zurau.simulation.brokers.connection import Unreachable
from zurau.simulation.brokers.invariants import broken
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.find_coordinator import FindCoordinatorRequest
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from zurau.wire.kafka.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from zurau.wire.kafka.schema import Message

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster


class GroupClient(Client):
    """Knows how to find the coordinator of its group."""

    def __init__(self, cluster: SimulatedCluster, name: str, group: str) -> None:
        super().__init__(cluster, name)
        self.group = group
        self._coordinator: BrokerId | None = None

    async def ask_coordinator(self, request: Message, version: int, timeout_ms: float | None = None) -> Any:
        """Raises `Unreachable`."""
        try:
            return await self.ask(await self._find_coordinator(), request, version, timeout_ms=timeout_ms)
        except Unreachable:
            self._coordinator = None
            raise

    def refused(self, codes: Iterable[int]) -> None:
        self._coordinator = None
        for code in set(codes) - {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
            self.require_retriable(code, "its group")

    async def _find_coordinator(self) -> BrokerId:
        while self._coordinator is None:
            try:
                answer = await self.ask(self.any_broker(), FindCoordinatorRequest(key=self.group), 3)
            except Unreachable:
                await self.rest()
                continue
            if answer.error_code == ErrorCode.NONE:
                self._coordinator = BrokerId(answer.node_id)
            else:
                self.require_retriable(answer.error_code, "a coordinator")
                await self.rest()
        return self._coordinator


class Committer(GroupClient):
    """Commits a number that grows, for many partitions at once."""

    def __init__(self, cluster: SimulatedCluster, number: int, topic: str, partitions: int) -> None:
        super().__init__(cluster, f"group-{number}", f"group-{number}")
        self._topic = topic
        self._partitions = range(partitions)
        self._committed = dict.fromkeys(self._partitions, -1)
        #: Commits whose outcome was never told: they may count, now or a little later.
        self._unresolved: set[tuple[int, int]] = set()
        self._count = 0

    async def run(self) -> None:
        while self.goes_on:
            if self.chance.random() < 0.6:
                await self.commit()
            else:
                await self.look()
            await self.think()
        while not await self.commit():
            await self.rest()
        while not await self.look():
            await self.rest()

    async def commit(self) -> bool:
        self._count += 1
        chosen = self.chance.sample(self._partitions, self.chance.randint(1, len(self._partitions)))
        note = "note" * self.chance.choice([0, 1, 20])
        items = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=self._count, committed_metadata=note)
            for index in chosen
        ]
        topics = [OffsetCommitRequestTopic(name=self._topic, partitions=items)]
        request = OffsetCommitRequest(group_id=self.name, topics=topics)
        try:
            answer = await self.ask_coordinator(request, 7)
        except Unreachable:
            self._unresolved |= {(index, self._count) for index in chosen}
            return False
        codes = {partition.error_code for partition in answer.topics[0].partitions}
        if codes != {ErrorCode.NONE}:
            self.refused(codes)
            self._unresolved |= {(index, self._count) for index in chosen}
            return False
        self._committed |= dict.fromkeys(chosen, self._count)
        self.history.trace.note(f"{self.name} has committed {self._count} for {len(chosen)} partitions")
        self.history.counts["commits"] += 1
        return True

    async def look(self) -> bool:
        before = dict(self._committed)
        topics = [OffsetFetchRequestTopic(name=self._topic, partition_indexes=list(self._partitions))]
        request = OffsetFetchRequest(group_id=self.name, topics=topics)
        try:
            answer = await self.ask_coordinator(request, 5)
        except Unreachable:
            return False
        if answer.error_code != ErrorCode.NONE:
            self.refused({answer.error_code})
            return False
        for partition in answer.topics[0].partitions:
            index, found = partition.partition_index, partition.committed_offset
            may_be_behind = not self.cluster.is_lone and self.goes_on  # a coordinator that was deposed, for a moment
            if found < before[index] and (index, found) not in self._unresolved and not may_be_behind:
                seen = f"{self.name} finds {found} for {self._topic}-{index}, and has committed {before[index]}"
                broken("CommittedOffsetsNeverGoBack", seen)
        return True
