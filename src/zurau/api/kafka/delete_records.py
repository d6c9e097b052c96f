"""DeleteRecords: the start of a log moves up; what is below it is gone for readers at once."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.errors import Refused
from zurau.ids import Offset
from zurau.machines.controller.names import is_internal
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

UNKNOWN_OFFSET = -1


async def handle(request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[await _answer(topic.name, each, call) async for each in call.in_turns(topic.partitions)],
            )
            async for topic in call.in_turns(request.topics)
        ]
    )


async def _answer(topic: str, wanted: DeleteRecordsPartition, call: Call) -> DeleteRecordsPartitionResult:
    try:
        low_watermark = await _delete(topic, wanted, call)
    except Refused as refused:
        return DeleteRecordsPartitionResult(
            partition_index=wanted.partition_index, low_watermark=UNKNOWN_OFFSET, error_code=refused.code
        )
    return DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=low_watermark)


async def _delete(topic: str, wanted: DeleteRecordsPartition, call: Call) -> Offset:
    if is_internal(topic):
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = call.broker.partition(topic, wanted.partition_index)
    if "delete" not in partition.log.settings.cleanup_policy:
        # A compacted log promises the last record of each key.
        raise Refused(ErrorCode.POLICY_VIOLATION)
    return await partition.delete_records_before(wanted.offset)
