"""OffsetForLeaderEpoch: where a leader epoch ended, so that a consumer can notice a truncated log."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.epochs import check_leader_epoch
from zurau.errors import Refused
from zurau.log.epochs import end_offset_for
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


async def handle(request: OffsetForLeaderEpochRequest, call: Call) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_find(topic.topic, wanted, call) async for wanted in call.in_turns(topic.partitions)],
            )
            async for topic in call.in_turns(request.topics)
        ]
    )


def _find(topic: str, wanted: OffsetForLeaderPartition, call: Call) -> EpochEndOffset:
    try:
        partition = call.broker.partition(topic, wanted.partition)
        check_leader_epoch(wanted.current_leader_epoch, partition)
    except Refused as refused:
        return EpochEndOffset(error_code=refused.code, partition=wanted.partition)
    if wanted.leader_epoch == partition.leader_epoch:
        # The epoch that is still going on ends, for a consumer, where it may read to.
        epoch, end_offset = wanted.leader_epoch, partition.high_watermark
    else:
        epoch, end_offset = end_offset_for(partition.log.epochs, wanted.leader_epoch, partition.log.end_offset)
    return EpochEndOffset(
        error_code=ErrorCode.NONE, partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset
    )
