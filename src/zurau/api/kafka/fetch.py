"""Fetch: read batches from some partitions, waiting for more when there is too little.

Batches are passed on as they are stored. Each partition's reading goes on from where it stopped when more arrives, so
a long poll reads every byte once. Fetch sessions (KIP-227) are declined, which Kafka's rules allow: clients then name
all their partitions in each request.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

from msgspec.structs import replace

from zurau.api.kafka.call import Call
from zurau.api.kafka.epochs import check_leader_epoch, find_divergence
from zurau.api.within import within
from zurau.errors import OffsetOutOfRange, Refused
from zurau.ids import NO_TOPIC_ID, Offset, TopicId
from zurau.partition.partition import Partition
from zurau.pending import any_of
from zurau.ports import WouldBlock
from zurau.records.batch import iter_batches, parse_header
from zurau.records.compression import Compression
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

READ_COMMITTED = 1
TOPIC_IDS_SINCE = 13
ZSTD_SINCE = 10


@dataclass(slots=True)
class _Reading:
    """One partition's share of a response."""

    topic: str
    topic_id: TopicId
    wanted: FetchPartition
    next_offset: Offset
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    partition: Partition | None = None
    error: ErrorCode = ErrorCode.NONE
    divergence: EpochEndOffset | None = None
    #: Where the partition ended for this reader when it was last read.
    seen_upto: Offset = -1

    def refuse(self, code: ErrorCode) -> None:
        self.error = code
        self.pieces.clear()
        self.size = 0


async def handle(request: FetchRequest, call: Call) -> FetchResponse:
    if request.session_id != 0:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
    readings = [
        _Reading(*_topic_of(topic.topic, topic.topic_id, call), wanted=wanted, next_offset=wanted.fetch_offset)
        for topic in request.topics
        for wanted in topic.partitions
    ]
    deadline_ms = call.broker.clock.monotonic_ms() + request.max_wait_ms
    max_bytes = min(request.max_bytes, call.broker.settings.fetch_max_bytes)
    while True:
        size = await _read_all(readings, max_bytes, request.isolation_level, call)
        if size >= request.min_bytes or any(reading.error or reading.divergence for reading in readings):
            break
        if not readings or not await _wait_for_more(readings, deadline_ms, call):
            break
    return FetchResponse(responses=_by_topic(readings, request.isolation_level))


def _topic_of(name: str, topic_id: bytes, call: Call) -> tuple[str, TopicId]:
    """Both names of a topic; the name is empty when the id is unknown."""
    if call.version < TOPIC_IDS_SINCE:
        return name, NO_TOPIC_ID
    topic = call.broker.image.topics_by_id.get(TopicId(topic_id))
    return (topic.name if topic is not None else ""), TopicId(topic_id)


async def _read_all(readings: list[_Reading], max_bytes: int, isolation_level: int, call: Call) -> int:
    """Read what is there now, up to the limits; returns the bytes gathered so far."""
    total = sum(reading.size for reading in readings)
    for reading in readings:
        total -= reading.size
        try:
            await _read_one(reading, isolation_level, max_bytes - total, call, is_first=total == 0)
        except Refused as refused:
            reading.refuse(ErrorCode(refused.code))
        except OffsetOutOfRange:
            reading.refuse(ErrorCode.OFFSET_OUT_OF_RANGE)
        total += reading.size
    return total


async def _read_one(reading: _Reading, isolation_level: int, room: int, call: Call, *, is_first: bool) -> None:
    """Read one partition on, with `room` bytes left in the response besides what the partition has in it.

    Only the first batch of a whole response may be larger than asked for (KIP-74); `is_first`: no other partition has
    one in it.
    """
    wanted = reading.wanted
    if not reading.topic:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
    partition = reading.partition = call.broker.partition(reading.topic, wanted.partition)
    if reading.topic_id not in (NO_TOPIC_ID, partition.topic_id):
        raise Refused(ErrorCode.INCONSISTENT_TOPIC_ID)
    check_leader_epoch(wanted.current_leader_epoch, partition)
    reading.divergence = find_divergence(wanted.last_fetched_epoch, wanted.fetch_offset, partition)
    upto = reading.seen_upto = partition.readable_upto(committed_only=isolation_level == READ_COMMITTED)
    limit = min(wanted.partition_max_bytes, room) - reading.size
    must_fit = bool(reading.pieces) or not is_first
    if reading.divergence is not None or (must_fit and limit <= 0):
        return
    offset = reading.next_offset
    try:
        data = partition.read(offset, limit, upto)
    except WouldBlock:
        data = await call.broker.workers.run(lambda: partition.read(offset, limit, upto, may_block=True))
    if data and not (must_fit and len(data) > limit):
        _take(reading, data, call.version)


def _take(reading: _Reading, data: bytes, version: int) -> None:
    if version < ZSTD_SINCE and parse_header(data).compression == Compression.ZSTD:
        raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    reading.pieces.append(data)
    reading.size += len(data)
    reading.next_offset = -1  # found out only if more is wanted: it takes a walk over the batches


async def _wait_for_more(readings: list[_Reading], deadline_ms: float, call: Call) -> bool:
    """Wait until a partition has more than was seen; False when the time is over."""
    clock = call.broker.clock
    waits = []
    for reading in readings:
        assert reading.partition is not None
        if reading.pieces and reading.next_offset < 0:
            reading.next_offset = _end_of(reading.pieces[-1])
        if reading.partition.fault is None:  # or else nothing more will come, at least for a while
            offset = reading.seen_upto + 1
            waits.append((reading, offset, reading.partition.wait_high_watermark(offset)))
    more = await within(deadline_ms - clock.monotonic_ms(), any_of(wait for _, _, wait in waits), clock)
    for reading, offset, wait in waits:
        if not wait.is_done and reading.partition is not None:
            reading.partition.stop_waiting(offset, wait)
    return more


def _end_of(batches: bytes) -> Offset:
    """The offset after the last of some whole batches."""
    *_, (last, _) = iter_batches(batches)
    return last.next_offset


def _by_topic(readings: list[_Reading], isolation_level: int) -> list[FetchableTopicResponse]:
    return [
        FetchableTopicResponse(
            topic=topic,
            topic_id=topic_id,
            partitions=[_partition_data(reading, isolation_level) for reading in group],
        )
        for (topic, topic_id), group in groupby(readings, key=lambda reading: (reading.topic, reading.topic_id))
    ]


def _partition_data(reading: _Reading, isolation_level: int) -> PartitionData:
    partition = reading.partition
    data = PartitionData(
        partition_index=reading.wanted.partition,
        error_code=reading.error,
        high_watermark=partition.high_watermark if partition else -1,
        last_stable_offset=partition.last_stable_offset if partition else -1,
        log_start_offset=partition.log.start_offset if partition else -1,
        aborted_transactions=[] if isolation_level == READ_COMMITTED else None,
        records=reading.pieces[0] if len(reading.pieces) == 1 else b"".join(reading.pieces),
    )
    return data if reading.divergence is None else replace(data, diverging_epoch=reading.divergence)
