"""DescribeTopicPartitions: what Metadata says about topics, in pages.

Topics come in the order of their names. A page ends where its limit of partitions is reached; its cursor names the
partition with which the next one begins, whether or not the topics are still the same by then.
"""

from __future__ import annotations

from zurau.api.kafka import authorized_operations
from zurau.api.kafka.call import Call
from zurau.broker.leadership import leadership_of
from zurau.machines.controller.image import PartitionImage, TopicImage
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


async def handle(request: DescribeTopicPartitionsRequest, call: Call) -> DescribeTopicPartitionsResponse:
    first_name, first_index = "", 0
    if request.cursor is not None:
        first_name, first_index = request.cursor.topic_name, max(0, request.cursor.partition_index)
    room = max(1, min(request.response_partition_limit, call.broker.settings.max_request_partition_size_limit))
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    if request.topics:
        await call.broker.controller.catch_up()  # they may just have been made or grown, at another broker
    async for name in call.in_turns(_names(request, first_name, call)):
        if room == 0:
            return _page(topics, Cursor(topic_name=name, partition_index=0))
        topic = call.broker.image.topics.get(name)
        if topic is None:
            topics.append(_unknown(name))
            continue
        start = first_index if name == first_name else 0
        shown = topic.partitions[start : start + room]
        topics.append(_described(topic, shown, call))
        room -= len(shown)
        if start + len(shown) < len(topic.partitions):
            return _page(topics, Cursor(topic_name=name, partition_index=start + len(shown)))
    return _page(topics, None)


def _names(request: DescribeTopicPartitionsRequest, first_name: str, call: Call) -> list[str]:
    names = {topic.name for topic in request.topics} or call.broker.image.topics
    return sorted(name for name in names if name >= first_name)


def _page(
    topics: list[DescribeTopicPartitionsResponseTopic], next_cursor: Cursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)


def _described(
    topic: TopicImage, partitions: tuple[PartitionImage, ...], call: Call
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_described_partition(topic, partition, call) for partition in partitions],
        topic_authorized_operations=authorized_operations.ON_TOPIC,
    )


def _described_partition(
    topic: TopicImage, partition: PartitionImage, call: Call
) -> DescribeTopicPartitionsResponsePartition:
    leadership = leadership_of(topic, partition, call.broker)
    return DescribeTopicPartitionsResponsePartition(
        error_code=leadership.error_code,
        partition_index=partition.index,
        leader_id=leadership.leader_id,
        leader_epoch=leadership.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=leadership.in_sync,
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=leadership.offline,
    )
