"""OffsetDelete: forget how far a group has read some partitions."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group, pieces
from zurau.errors import Refused
from zurau.ids import TopicPartition
from zurau.machines.groups.commands import DeleteOffsets
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
        async for topic in call.in_turns(request.topics)
        async for partition in call.in_turns(topic.partitions)
    ]
    # Also of partitions that are no more: somebody may have committed before partitions were looked at.
    known = [name async for name in call.in_turns(dict.fromkeys(wanted)) if name.topic in call.broker.image.topics]
    codes = dict.fromkeys(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        async for piece in call.in_turns(pieces(known)):
            deleted = await ask_group(request.group_id, DeleteOffsets(request.group_id, piece), call)
            codes |= deleted.codes
    except Refused as refused:
        return OffsetDeleteResponse(error_code=refused.code)
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=index, error_code=codes[TopicPartition(topic.name, index)]
                    )
                    async for index in call.in_turns([partition.partition_index for partition in topic.partitions])
                ],
            )
            async for topic in call.in_turns(request.topics)
        ]
    )
