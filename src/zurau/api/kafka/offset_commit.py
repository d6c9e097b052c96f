"""OffsetCommit: a group has read this far.

From version 10 on topics are named by id, so that a commit for a topic that was deleted and made again under its name
does not count for the new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group, pieces
from zurau.errors import Refused
from zurau.ids import TopicId, TopicPartition
from zurau.machines.groups.commands import CommitOffsets, NewOffset
from zurau.pending import all_of, start
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TOPIC_IDS_SINCE = 10

Piece = Sequence[tuple[TopicPartition, NewOffset]]


async def handle(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    names = [_name_of(topic, call) async for topic in call.in_turns(request.topics)]
    wanted = {
        TopicPartition(name, partition.partition_index): partition
        async for name, topic in call.in_turns(list(zip(names, request.topics, strict=True)))
        if name is not None
        async for partition in call.in_turns(topic.partitions)
    }
    image = call.broker.image
    known = [
        (name, _new_offset(partition, image.topics[name.topic].topic_id))
        async for name, partition in call.in_turns(wanted.items())
        if image.has_partition(name)
    ]
    # All are asked for before the first is awaited, so that they share one flush.
    asked = [start(_commit(piece, request, call)) async for piece in call.in_turns(pieces(known))]
    await all_of(asked)
    codes = dict.fromkeys(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    for committed in asked:
        codes |= committed.result()
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=index, error_code=_code(codes, name, index))
                    async for index in call.in_turns([partition.partition_index for partition in topic.partitions])
                ],
            )
            async for name, topic in call.in_turns(list(zip(names, request.topics, strict=True)))
        ]
    )


def _name_of(topic: OffsetCommitRequestTopic, call: Call) -> str | None:
    """None when no topic has the id."""
    if call.version < TOPIC_IDS_SINCE:
        return topic.name
    found = call.broker.image.topics_by_id.get(TopicId(topic.topic_id))
    return None if found is None else found.name


def _code(codes: Mapping[TopicPartition, ErrorCode], name: str | None, index: int) -> ErrorCode:
    return ErrorCode.UNKNOWN_TOPIC_ID if name is None else codes[TopicPartition(name, index)]


async def _commit(partitions: Piece, request: OffsetCommitRequest, call: Call) -> Mapping[TopicPartition, ErrorCode]:
    try:
        reply = await ask_group(request.group_id, _command(request, partitions), call)
    except Refused as refused:
        return {name: ErrorCode(refused.code) for name, _ in partitions}
    return reply.codes


def _new_offset(partition: OffsetCommitRequestPartition, topic_id: TopicId) -> NewOffset:
    offset, epoch = partition.committed_offset, partition.committed_leader_epoch
    return NewOffset(offset, epoch, partition.committed_metadata or "", topic_id)


def _command(request: OffsetCommitRequest, partitions: Piece) -> CommitOffsets:
    return CommitOffsets(
        group_id=request.group_id,
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        offsets=dict(partitions),
        retention_ms=request.retention_time_ms if request.retention_time_ms >= 0 else None,
    )
