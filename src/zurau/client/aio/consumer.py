"""`Consumer` and `GroupConsumer`, for asyncio.

A poll that was begun goes on when its caller is cancelled, and what it finds is kept for the next one. So is the rest
of a poll when an iteration stops in the middle: it counts as read only when it is handed out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from zurau.client.aio.worker import Worker
from zurau.client.cluster.cluster import Cluster
from zurau.client.consumer.consumer import Consumer, PartitionRecords
from zurau.client.consumer.fetcher import GO_TO_START, FetchSettings
from zurau.client.errors import ClientError
from zurau.client.groups.consumer import GroupConsumer
from zurau.client.groups.membership import GroupSettings
from zurau.client.offsets import end_offsets, start_offsets
from zurau.client.retry import Deadline
from zurau.ids import Offset, TopicPartition
from zurau.records.record import Record

#: How long the thread waits at a time: other calls have to wait for it.
ROUND_S = 0.25


class Synchronous(Protocol):
    @property
    def positions(self) -> dict[TopicPartition, Offset]: ...

    def poll(self, timeout_s: float) -> list[PartitionRecords]: ...

    def seek(self, partition: TopicPartition, offset: Offset) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


C = TypeVar("C", bound=Synchronous)


class Unread(NamedTuple):
    """Records that have arrived and were not handed out yet."""

    partition: TopicPartition
    records: deque[Record]
    high_watermark: Offset


class Reader(Generic[C]):
    """What both kinds of consumers have in common."""

    def __init__(self, cluster: Cluster, consumer: C) -> None:
        self._cluster = cluster
        self._consumer = consumer
        self._worker = Worker("zurau-consumer")
        self._turn = asyncio.Lock()
        self._begun: asyncio.Future[list[PartitionRecords]] | None = None
        self._unread: deque[Unread] = deque()

    @property
    def positions(self) -> dict[TopicPartition, Offset]:
        """The offset after the last record that was handed out, or passed over, in each partition."""
        return self._consumer.positions | {
            unread.partition: unread.records[0].offset for unread in reversed(self._unread) if unread.records
        }

    async def poll(self, timeout_s: float = 1.0) -> list[PartitionRecords]:
        """What has arrived, waiting up to `timeout_s`; empty when nothing did."""
        async with self._turn:
            if not self._unread:
                await self._fetch(Deadline(timeout_s))
            found = [PartitionRecords(partition, list(records), mark) for partition, records, mark in self._unread]
            self._unread.clear()
            return found

    def __aiter__(self) -> Self:
        """Records for ever; waits when there are none. Stopping in the middle leaves the rest for whoever goes on."""
        return self

    async def __anext__(self) -> tuple[TopicPartition, Record]:
        async with self._turn:
            while True:
                while self._unread and not self._unread[0].records:
                    self._unread.popleft()
                if self._unread:
                    return self._unread[0].partition, self._unread[0].records.popleft()
                await self._fetch(Deadline(ROUND_S))

    async def seek(self, partition: TopicPartition, offset: Offset) -> None:
        """Go on from another offset in a partition that is already assigned."""
        async with self._turn:
            await self._settle()
            self._unread = deque(unread for unread in self._unread if unread.partition != partition)
            await self._worker.do(self._consumer.seek, partition, offset)

    async def _fetch(self, deadline: Deadline) -> None:
        """Poll until something has come or the time is over; a poll that somebody gave up waiting for counts first."""
        while True:
            if self._begun is None:
                self._begun = self._worker.begin(self._consumer.poll, min(deadline.remaining_s, ROUND_S))
            await self._settle()
            if self._unread or deadline.passed:
                return

    async def _settle(self) -> None:
        """Take in what a poll that was begun brings. If this is cancelled it stays begun."""
        if self._begun is None:
            return
        try:
            found = await asyncio.shield(self._begun)
        except ClientError:
            self._begun = None
            raise
        self._begun = None
        self._unread += [Unread(partition, deque(records), mark) for partition, records, mark in found]

    async def _take_back(self) -> None:
        """What was not handed out is to be read again: nobody has seen it."""
        try:
            await self._settle()
        finally:
            seen: set[TopicPartition] = set()
            for unread in self._unread:
                if unread.records and unread.partition not in seen:
                    seen.add(unread.partition)
                    await self._worker.do(self._consumer.seek, unread.partition, unread.records[0].offset)
            self._unread.clear()

    async def close(self) -> None:
        await self.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self._turn:
            try:
                await self._take_back()
            finally:
                try:
                    await self._worker.do(self._consumer.__exit__, kind, error, trace)
                finally:
                    self._worker.begin(self._cluster.close)
                    self._worker.end()


class AsyncConsumer(Reader[Consumer]):
    """Assign partitions, then poll or iterate. Use it in an `async with` block."""

    def __init__(self, cluster: Cluster, settings: FetchSettings | None = None) -> None:
        own = cluster.sibling()
        super().__init__(own, Consumer(own, settings))

    async def assign(self, positions: Mapping[TopicPartition, Offset]) -> None:
        """Read these partitions from these offsets, and no others."""
        async with self._turn:
            await self._settle()
            self._unread.clear()
            await self._worker.do(self._consumer.assign, positions)

    async def partitions_of(self, topic: str) -> list[TopicPartition]:
        def look() -> list[TopicPartition]:
            return self._cluster.retry(lambda: self._cluster.partitions_of(topic))

        return await self._worker.do(look)

    async def start_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        return await self._worker.do(start_offsets, self._cluster, list(partitions))

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        return await self._worker.do(end_offsets, self._cluster, list(partitions))


class AsyncGroupConsumer(Reader[GroupConsumer]):
    """Shares topics with the other members of a group. Use it in an `async with` block; leaving commits what was handed
    out, and leaves the group. Records count as done once more are asked for."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Iterable[str],
        *,
        start: str = GO_TO_START,
        fetch: FetchSettings | None = None,
        settings: GroupSettings | None = None,
    ) -> None:
        own = cluster.sibling()
        super().__init__(own, GroupConsumer(own, group, topics, start=start, fetch=fetch, settings=settings))

    @property
    def assignment(self) -> list[TopicPartition]:
        return self._consumer.assignment

    async def commit(self) -> None:
        """Store how far we got: all that was handed out, and no more."""
        async with self._turn:
            await self._take_back()
            await self._worker.do(self._consumer.commit)
