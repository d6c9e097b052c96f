"""OffsetFetch: how far have groups read?

Up to version 7 a request is about one group and from version 8 on about several; the answers differ in shape only. From
version 10 on topics are named by id; a topic whose id is not known is not looked for.
A partition without a committed offset is answered with -1 and no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from msgspec.structs import replace

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group
from zurau.errors import Refused
from zurau.ids import NO_TOPIC_ID, TopicId, TopicPartition
from zurau.machines.groups.commands import CommittedOffset, FetchOffsets, OffsetsFetched
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

GROUP_ERROR_SINCE = 2
MANY_GROUPS_SINCE = 8
TOPIC_IDS_SINCE = 10

NOT_COMMITTED = CommittedOffset(offset=-1, leader_epoch=-1, metadata="", committed_ms=-1)

Offsets = Mapping[TopicPartition, CommittedOffset | None]
Topics = Iterable[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None


async def handle(request: OffsetFetchRequest, call: Call) -> OffsetFetchResponse:
    if call.version >= MANY_GROUPS_SINCE:
        return OffsetFetchResponse(groups=[await _answer(group, call) for group in request.groups])
    wanted = _partitions(request.topics)
    code = ErrorCode.NONE
    try:
        offsets = await _fetch(request.group_id, wanted, call)
    except Refused as refused:
        code, offsets = ErrorCode(refused.code), dict.fromkeys(wanted or ())
    partition_code = code if call.version < GROUP_ERROR_SINCE else ErrorCode.NONE
    return OffsetFetchResponse(topics=_topics(offsets, partition_code), error_code=code)


async def _answer(group: OffsetFetchRequestGroup, call: Call) -> OffsetFetchResponseGroup:
    wanted = group.topics
    unknown: list[OffsetFetchResponseTopics] = []
    if call.version >= TOPIC_IDS_SINCE:
        wanted, unknown = _by_name(group.topics, call)
    try:
        offsets = await _fetch(group.group_id, _partitions(wanted), call)
    except Refused as refused:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=refused.code)
    topics = [
        OffsetFetchResponseTopics(
            name=topic,
            topic_id=_id_of(topic, call),
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=name.partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                )
                for name, committed in of_topic
            ],
        )
        for topic, of_topic in _by_topic(offsets)
    ]
    if call.version >= TOPIC_IDS_SINCE:
        # Asked for everything, a group may still have offsets of a topic that has just gone.
        topics = [topic for topic in topics if topic.topic_id != NO_TOPIC_ID]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics + unknown)


def _by_name(
    topics: Iterable[OffsetFetchRequestTopics] | None, call: Call
) -> tuple[list[OffsetFetchRequestTopics] | None, list[OffsetFetchResponseTopics]]:
    """The topics with their names, and the answers for those whose id nobody knows."""
    if topics is None:
        return None, []
    known, unknown = [], []
    for topic in topics:
        image = call.broker.image.topics_by_id.get(TopicId(topic.topic_id))
        if image is not None:
            known.append(replace(topic, name=image.name))
        else:
            unknown.append(
                OffsetFetchResponseTopics(
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetFetchResponsePartitions(
                            partition_index=index,
                            committed_offset=NOT_COMMITTED.offset,
                            metadata=NOT_COMMITTED.metadata,
                            error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                        )
                        for index in topic.partition_indexes
                    ],
                )
            )
    return known, unknown


def _id_of(name: str, call: Call) -> bytes:
    topic = call.broker.image.topics.get(name)
    return NO_TOPIC_ID if topic is None else topic.topic_id


async def _fetch(group_id: str, partitions: tuple[TopicPartition, ...] | None, call: Call) -> Offsets:
    fetched: OffsetsFetched = await ask_group(group_id, FetchOffsets(group_id, partitions), call)
    return fetched.offsets


def _partitions(topics: Topics) -> tuple[TopicPartition, ...] | None:
    """None asks for everything."""
    if topics is None:
        return None
    return tuple(TopicPartition(topic.name, index) for topic in topics for index in topic.partition_indexes)


def _topics(offsets: Offsets, code: ErrorCode) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name=topic,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=name.partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    error_code=code,
                )
                for name, committed in of_topic
            ],
        )
        for topic, of_topic in _by_topic(offsets)
    ]


def _by_topic(offsets: Offsets) -> Iterable[tuple[str, list[tuple[TopicPartition, CommittedOffset]]]]:
    for topic, names in groupby(offsets, key=lambda name: name.topic):
        yield topic, [(name, offsets[name] or NOT_COMMITTED) for name in names]
