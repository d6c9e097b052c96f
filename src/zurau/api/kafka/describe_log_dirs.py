"""DescribeLogDirs: how many bytes each partition takes on this broker's disk."""

from __future__ import annotations

from collections.abc import Collection

from zurau.api.kafka.call import Call
from zurau.errors import DiskFault
from zurau.ids import TopicPartition
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


async def handle(request: DescribeLogDirsRequest, call: Call) -> DescribeLogDirsResponse:
    disk = call.broker.world.disk
    log_dir = str(disk.root)
    try:
        usable_bytes = disk.free_bytes()
    except DiskFault:
        failed = DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=log_dir)
        return DescribeLogDirsResponse(results=[failed])
    topics = [
        DescribeLogDirsTopic(name=name, partitions=await _sizes(name, indexes, call))
        async for name, indexes in call.in_turns(_wanted(request, call).items())
    ]
    return DescribeLogDirsResponse(
        results=[DescribeLogDirsResult(log_dir=log_dir, topics=topics, usable_bytes=usable_bytes)]
    )


def _wanted(request: DescribeLogDirsRequest, call: Call) -> dict[str, dict[int, None]]:
    """Each partition once, however often it is named."""
    if request.topics is None:
        topics = call.broker.image.topics.values()
        return {topic.name: dict.fromkeys(range(len(topic.partitions))) for topic in topics}
    wanted: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.topic, {}).update(dict.fromkeys(topic.partitions))
    return wanted


async def _sizes(topic: str, indexes: Collection[int], call: Call) -> list[DescribeLogDirsPartition]:
    """What is not here is left out: the client asks every broker and adds up."""
    return [
        DescribeLogDirsPartition(
            partition_index=index, partition_size=partition.log.size_bytes, offset_lag=0, is_future_key=False
        )
        async for index in call.in_turns(indexes)
        if (partition := call.broker.partitions.get(TopicPartition(topic, index))) is not None
    ]
