"""OffsetDelete: forget how far a group has read some partitions."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group
from zurau.errors import Refused
from zurau.ids import TopicPartition
from zurau.machines.groups.commands import DeleteOffsets, OffsetsDeleted
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(request: OffsetDeleteRequest, call: Call) -> OffsetDeleteResponse:
    wanted = [
        TopicPartition(topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    known = tuple(name for name in wanted if name.topic in call.broker.image.topics)
    codes = dict.fromkeys(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        command = DeleteOffsets(request.group_id, known)
        deleted: OffsetsDeleted = await ask_group(request.group_id, command, call)
    except Refused as refused:
        return OffsetDeleteResponse(error_code=refused.code)
    codes |= deleted.codes
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=index, error_code=codes[TopicPartition(topic.name, index)]
                    )
                    for index in (partition.partition_index for partition in topic.partitions)
                ],
            )
            for topic in request.topics
        ]
    )
