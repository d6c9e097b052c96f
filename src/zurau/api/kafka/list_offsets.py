"""ListOffsets: the first and last offsets of partitions, and the offset at a time."""

from __future__ import annotations

from collections.abc import Callable

from zurau.api.kafka.call import Call
from zurau.api.kafka.epochs import check_leader_epoch
from zurau.errors import DiskFault, Refused
from zurau.ids import Epoch, Offset
from zurau.partition.partition import Partition, refusal
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

READ_COMMITTED = 1
NOT_FOUND = (-1, -1)

# What a timestamp means when it is negative.
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6


async def handle(request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    committed_only = request.isolation_level == READ_COMMITTED
    topics = []
    for topic in request.topics:
        partitions = [await _answer(topic.name, wanted, committed_only, call) for wanted in topic.partitions]
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(topics=topics)


async def _answer(
    topic: str, wanted: ListOffsetsPartition, committed_only: bool, call: Call
) -> ListOffsetsPartitionResponse:
    try:
        partition = call.broker.partition(topic, wanted.partition_index)
        check_leader_epoch(wanted.current_leader_epoch, partition)
        offset, timestamp = await _find(partition, wanted.timestamp, committed_only, call)
    except Refused as refused:
        return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=refused.code)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=_epoch_at(partition, offset),
    )


def _epoch_at(partition: Partition, offset: Offset) -> Epoch:
    if offset < 0:
        return -1
    return partition.leader_epoch if offset >= partition.log.end_offset else partition.log.epochs.epoch_of(offset)


async def _find(partition: Partition, timestamp: int, committed_only: bool, call: Call) -> tuple[Offset, int]:
    """The offset, and the timestamp of the record there where it was looked for by time."""
    log = partition.log
    if timestamp == LATEST and partition.fault is None:
        # So that a producer that was acknowledged without a flush (acks=1) finds its own records counted.
        await partition.wait_high_watermark(log.end_offset)
    upto = partition.readable_upto(committed_only=committed_only)
    if timestamp == LATEST:
        return upto, -1
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.start_offset, -1
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOT_FOUND
    if timestamp == MAX_TIMESTAMP:
        return await _look(lambda: log.find_max_timestamp(upto), call)
    if timestamp < 0:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{timestamp} is not a time and none of the special values")
    return await _look(lambda: log.find_by_timestamp(timestamp, upto), call)


async def _look(search: Callable[[], tuple[Offset, int] | None], call: Call) -> tuple[Offset, int]:
    """Search in a worker, one search at a time: what is unpacked for it may be large."""
    try:
        found = await call.broker.searches.run(search)
    except DiskFault as fault:
        raise refusal(fault) from fault
    return found or NOT_FOUND
