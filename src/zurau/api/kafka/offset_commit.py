"""OffsetCommit: a group has read this far."""

from __future__ import annotations

from collections.abc import Mapping

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group
from zurau.errors import Refused
from zurau.ids import TopicPartition
from zurau.machines.groups.commands import CommitOffsets, NewOffset, OffsetsCommitted
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


async def handle(request: OffsetCommitRequest, call: Call) -> OffsetCommitResponse:
    wanted = {
        TopicPartition(topic.name, partition.partition_index): partition
        for topic in request.topics
        for partition in topic.partitions
    }
    known = {name: partition for name, partition in wanted.items() if name.topic in call.broker.image.topics}
    codes = dict.fromkeys(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        reply: OffsetsCommitted = await ask_group(request.group_id, _command(request, known), call)
        codes |= reply.codes
    except Refused as refused:
        codes = dict.fromkeys(wanted, ErrorCode(refused.code))
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=index, error_code=codes[TopicPartition(topic.name, index)]
                    )
                    for index in (partition.partition_index for partition in topic.partitions)
                ],
            )
            for topic in request.topics
        ]
    )


def _command(
    request: OffsetCommitRequest, partitions: Mapping[TopicPartition, OffsetCommitRequestPartition]
) -> CommitOffsets:
    return CommitOffsets(
        group_id=request.group_id,
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        offsets={
            name: NewOffset(
                partition.committed_offset, partition.committed_leader_epoch, partition.committed_metadata or ""
            )
            for name, partition in partitions.items()
        },
        retention_ms=request.retention_time_ms if request.retention_time_ms >= 0 else None,
    )
