"""OffsetFetch: how far have groups read?

Up to version 7 a request is about one group and from version 8 on about several; the answers differ in shape only.
A partition without a committed offset is answered with -1 and no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group
from zurau.errors import Refused
from zurau.ids import TopicPartition
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
    try:
        offsets = await _fetch(group.group_id, _partitions(group.topics), call)
    except Refused as refused:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=refused.code)
    topics = [
        OffsetFetchResponseTopics(
            name=topic,
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
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


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
