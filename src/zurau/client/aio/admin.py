"""`Admin`, for asyncio."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from zurau.client.admin import Admin, ConfigEntry, NewTopic
from zurau.client.aio.worker import Worker
from zurau.client.cluster.cluster import Cluster
from zurau.client.cluster.metadata import Metadata, TopicInfo
from zurau.ids import BrokerId, Offset, TopicPartition


class AsyncAdmin:
    """Use it in an `async with` block. Calls of several tasks are made one after the other."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster.sibling()
        self._admin = Admin(self._cluster)
        self._worker = Worker("zurau-admin")

    async def describe_cluster(self) -> Metadata:
        return await self._worker.do(self._admin.describe_cluster)

    async def list_topics(self, *, with_internal: bool = False) -> list[TopicInfo]:
        return await self._worker.do(self._admin.list_topics, with_internal=with_internal)

    async def describe_topic(self, name: str) -> TopicInfo:
        return await self._worker.do(self._admin.describe_topic, name)

    async def create_topic(self, new: NewTopic) -> TopicInfo:
        return await self._worker.do(self._admin.create_topic, new)

    async def delete_topic(self, name: str) -> None:
        await self._worker.do(self._admin.delete_topic, name)

    async def add_partitions(self, name: str, total_count: int) -> TopicInfo:
        return await self._worker.do(self._admin.add_partitions, name, total_count)

    async def topic_settings(self, name: str) -> list[ConfigEntry]:
        return await self._worker.do(self._admin.topic_settings, name)

    async def broker_settings(self, broker: BrokerId, names: list[str] | None = None) -> list[ConfigEntry]:
        return await self._worker.do(self._admin.broker_settings, broker, names)

    async def change_topic_settings(self, name: str, changes: Mapping[str, str | None]) -> None:
        await self._worker.do(self._admin.change_topic_settings, name, changes)

    async def delete_records(self, before: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        return await self._worker.do(self._admin.delete_records, before)

    async def close(self) -> None:
        try:
            await self._worker.do(self._cluster.close)
        finally:
            self._worker.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
