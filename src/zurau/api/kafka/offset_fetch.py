"""OffsetFetch: how far have groups read?

Up to version 7 a request is about one group and from version 8 on about several; the answers differ in shape only. From
version 10 on topics are named by id; a topic whose id is not known is not looked for.
A partition without a committed offset is answered with -1 and no error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group, pieces
from zurau.errors import Refused
from zurau.ids import NO_TOPIC_ID, TopicId, TopicPartition
from zurau.machines.groups.commands import CommittedOffset, FetchOffsets
from zurau.pending import all_of, start
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
Topics = Collection[OffsetFetchRequestTopic | OffsetFetchRequestTopics] | None


async def handle(request: OffsetFetchRequest, call: Call) -> OffsetFetchResponse:
    if call.version >= MANY_GROUPS_SINCE:
        return OffsetFetchResponse(groups=await _answers(request.groups, call))
    wanted = await _partitions(request.topics, call)
    code = ErrorCode.NONE
    try:
        offsets = await _fetch(request.group_id, wanted, call)
    except Refused as refused:
        code, offsets = ErrorCode(refused.code), dict.fromkeys(wanted or ())
    partition_code = code if call.version < GROUP_ERROR_SINCE else ErrorCode.NONE
    return OffsetFetchResponse(topics=await _topics(offsets, partition_code, call), error_code=code)


async def _answers(groups: Collection[OffsetFetchRequestGroup], call: Call) -> list[OffsetFetchResponseGroup]:
    """Whoever asks for everything of a group twice gets the same answer twice, not another one of its size."""
    everything: dict[str, OffsetFetchResponseGroup] = {}
    answers = []
    async for group in call.in_turns(groups):
        answer = everything.get(group.group_id) if group.topics is None else None
        if answer is None:
            answer = await _answer(group, call)
            if group.topics is None:
                everything[group.group_id] = answer
        answers.append(answer)
    return answers


async def _answer(group: OffsetFetchRequestGroup, call: Call) -> OffsetFetchResponseGroup:
    wanted: Topics = group.topics
    unknown: list[OffsetFetchResponseTopics] = []
    if call.version >= TOPIC_IDS_SINCE:
        wanted, unknown = await _by_name(group.topics, call)
    try:
        offsets = await _fetch(group.group_id, await _partitions(wanted, call), call)
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
                async for name, committed in call.in_turns(of_topic)
            ],
        )
        async for topic, of_topic in call.in_turns((await _by_topic(offsets, call)).items())
    ]
    if call.version >= TOPIC_IDS_SINCE:
        # Asked for everything, a group may still have offsets of a topic that has just gone.
        topics = [topic for topic in topics if topic.topic_id != NO_TOPIC_ID]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics + unknown)


async def _by_name(
    topics: Collection[OffsetFetchRequestTopics] | None, call: Call
) -> tuple[list[OffsetFetchRequestTopics] | None, list[OffsetFetchResponseTopics]]:
    """The topics with their names, and the answers for those whose id nobody knows."""
    if topics is None:
        return None, []
    known, unknown = [], []
    async for topic in call.in_turns(topics):
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
                        async for index in call.in_turns(topic.partition_indexes)
                    ],
                )
            )
    return known, unknown


def _id_of(name: str, call: Call) -> bytes:
    topic = call.broker.image.topics.get(name)
    return NO_TOPIC_ID if topic is None else topic.topic_id


async def _fetch(group_id: str, partitions: list[TopicPartition] | None, call: Call) -> Offsets:
    if partitions is None:
        everything = await ask_group(group_id, FetchOffsets(group_id), call)
        found = everything.offsets.items()
        return {name: committed async for name, committed in call.in_turns(found) if _is_present(name, committed, call)}
    commands = [FetchOffsets(group_id, piece) for piece in pieces(partitions)]
    asked = [start(ask_group(group_id, command, call)) async for command in call.in_turns(commands)]
    await all_of(asked)
    offsets: dict[TopicPartition, CommittedOffset | None] = {}
    async for fetched in call.in_turns(asked):
        for name, committed in fetched.result().offsets.items():
            offsets[name] = committed if _is_present(name, committed, call) else None
    return offsets


def _is_present(name: TopicPartition, committed: CommittedOffset | None, call: Call) -> bool:
    """Not of a topic that had this name before, and whose offsets are about to be removed."""
    return committed is not None and committed.topic_id in (NO_TOPIC_ID, _id_of(name.topic, call))


async def _partitions(topics: Topics, call: Call) -> list[TopicPartition] | None:
    """None asks for everything."""
    if topics is None:
        return None
    return [
        TopicPartition(topic.name, index)
        async for topic in call.in_turns(topics)
        async for index in call.in_turns(topic.partition_indexes)
    ]


async def _topics(offsets: Offsets, code: ErrorCode, call: Call) -> list[OffsetFetchResponseTopic]:
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
                async for name, committed in call.in_turns(of_topic)
            ],
        )
        async for topic, of_topic in call.in_turns((await _by_topic(offsets, call)).items())
    ]


async def _by_topic(offsets: Offsets, call: Call) -> dict[str, list[tuple[TopicPartition, CommittedOffset]]]:
    by_topic: dict[str, list[tuple[TopicPartition, CommittedOffset]]] = {}
    async for name, committed in call.in_turns(offsets.items()):
        by_topic.setdefault(name.topic, []).append((name, committed or NOT_COMMITTED))
    return by_topic
