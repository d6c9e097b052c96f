"""Produce: append a batch to each of some partitions.

acks=0 gets no answer at all, acks=1 one as soon as the leader has written, acks=all one when the batches are committed.
"""

from __future__ import annotations

from typing import NamedTuple

from zurau.api.kafka.call import Call
from zurau.api.within import within
from zurau.errors import Refused
from zurau.ids import Offset
from zurau.partition.partition import Appended, Partition
from zurau.pending import Pending, all_of
from zurau.records.batch import parse_header
from zurau.records.compression import Compression
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

ACKS_ALL = -1
#: The first version whose clients know zstd (KIP-110).
ZSTD_SINCE = 7


class _Waiting(NamedTuple):
    """A batch that is written and not yet committed."""

    partition: Partition
    next_offset: Offset
    committed: Pending[None]
    answer: PartitionProduceResponse


async def handle(request: ProduceRequest, call: Call) -> ProduceResponse | None:
    waiting: list[_Waiting] = []
    responses = [
        TopicProduceResponse(
            name=topic.name,
            partition_responses=[_append(topic.name, data, request, call, waiting) for data in topic.partition_data],
        )
        for topic in request.topic_data
    ]
    if request.acks == 0:
        return None
    if waiting:
        await _wait_committed(waiting, request.timeout_ms, call)
    return ProduceResponse(responses=responses)


def _append(
    topic: str, data: PartitionProduceData, request: ProduceRequest, call: Call, waiting: list[_Waiting]
) -> PartitionProduceResponse:
    try:
        if request.acks not in (ACKS_ALL, 0, 1):
            raise Refused(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is -1, 0 or 1, not {request.acks}")
        partition = call.broker.partition(topic, data.index)
        if partition.name.topic in call.broker.internal_topics:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is written by the broker only")
        if request.acks == ACKS_ALL:
            partition.require_in_sync_replicas()
        appended = _append_batch(partition, data, call.version)
    except Refused as refused:
        return PartitionProduceResponse(
            index=data.index, error_code=refused.code, base_offset=-1, error_message=refused.message
        )
    answer = PartitionProduceResponse(
        index=data.index,
        error_code=ErrorCode.NONE,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.start_offset,
    )
    if request.acks == ACKS_ALL and partition.high_watermark < appended.next_offset:
        committed = partition.wait_high_watermark(appended.next_offset)
        waiting.append(_Waiting(partition, appended.next_offset, committed, answer))
    return answer


def _append_batch(partition: Partition, data: PartitionProduceData, version: int) -> Appended:
    batch = data.records
    if not isinstance(batch, memoryview) or not batch:
        raise Refused(ErrorCode.INVALID_RECORD, "a partition without records in the request")
    try:
        header = parse_header(batch)
    except ValueError as error:
        raise Refused(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if header.compression == Compression.ZSTD and version < ZSTD_SINCE:
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce version {ZSTD_SINCE} or later")
    return partition.append(batch, header)


async def _wait_committed(waiting: list[_Waiting], timeout_ms: int, call: Call) -> None:
    """Wait for all of them, then correct the answers of those that did not make it."""
    await within(timeout_ms, all_of(wait.committed for wait in waiting), call.broker.clock)
    for wait in waiting:
        try:
            if not wait.committed.is_done:
                wait.partition.stop_waiting(wait.next_offset, wait.committed)
                raise Refused(ErrorCode.REQUEST_TIMED_OUT, f"written, but not committed within {timeout_ms} ms")
            wait.committed.result()
        except Refused as refused:
            wait.answer.error_code = refused.code
            wait.answer.error_message = refused.message
            wait.answer.base_offset = -1
