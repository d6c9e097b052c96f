"""ListOffsets: the first and last offsets of partitions, and the offset at a time."""

from __future__ import annotations

from collections import Counter

from zurau.api.kafka.call import Call
from zurau.api.kafka.epochs import check_leader_epoch
from zurau.broker.offset_lookup import latest_offset, offset_at_time, offset_of_max_timestamp
from zurau.errors import Refused
from zurau.ids import Epoch, Offset
from zurau.partition.partition import Partition
from zurau.settings import INT64_MAX
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

#: The first version whose clients may ask for it.
SPECIAL_SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


async def handle(request: ListOffsetsRequest, call: Call) -> ListOffsetsResponse:
    committed_only = request.isolation_level == READ_COMMITTED
    topics = []
    mentions = Counter((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)
    for topic in request.topics:
        partitions = []
        for wanted in topic.partitions:
            count = mentions.pop((topic.name, wanted.partition_index), 0)
            if count == 1:
                partitions.append(await _answer(topic.name, wanted, committed_only, call))
            elif count > 1:  # as in Kafka: answered once, and not with what was asked for
                partitions.append(_refusal(wanted, ErrorCode.INVALID_REQUEST))
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
        return _refusal(wanted, refused.code)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=_epoch_at(partition, offset),
    )


def _refusal(wanted: ListOffsetsPartition, code: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=code)


def _epoch_at(partition: Partition, offset: Offset) -> Epoch:
    if offset < 0:
        return -1
    return partition.leader_epoch if offset >= partition.log.end_offset else partition.log.epochs.epoch_of(offset)


async def _find(partition: Partition, timestamp: int, committed_only: bool, call: Call) -> tuple[Offset, int]:
    """The offset, and the timestamp of the record there where it was looked for by time."""
    if timestamp < 0 and call.version < SPECIAL_SINCE.get(timestamp, INT64_MAX):
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"{timestamp} has no meaning in version {call.version}")
    partition.require_established()
    if timestamp == LATEST:
        return await latest_offset(partition, committed_only=committed_only), -1
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return partition.log.start_offset, -1
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOT_FOUND
    if timestamp == MAX_TIMESTAMP:
        found = await offset_of_max_timestamp(partition, call.caller, call.broker, committed_only=committed_only)
    else:
        found = await offset_at_time(timestamp, partition, call.caller, call.broker, committed_only=committed_only)
    return found or NOT_FOUND
