"""Fetch: read batches from some partitions, waiting for more when there is too little.

Batches are passed on as they are stored. A partition that is named more than once is read once, as its last mention
says, and answered once: so does Kafka. Fetch sessions (KIP-227) are declined, which Kafka's rules allow: clients then
name all their partitions in each request.
"""

from __future__ import annotations

from msgspec.structs import replace

from zurau.api.kafka.call import LONG, Call
from zurau.api.kafka.gathering import READ_COMMITTED, Gathering, Reading
from zurau.api.kafka.leader_hints import MISLED, LeaderHints
from zurau.ids import NO_TOPIC_ID, TopicId
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

TOPIC_IDS_SINCE = 13


async def handle(request: FetchRequest, call: Call) -> FetchResponse:
    if request.session_id != 0:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
    readings = await _name_once(request, call)
    request.topics.clear()  # what was named twice need not stay in memory for as long as the client waits
    max_bytes = min(request.max_bytes, call.broker.settings.fetch_max_bytes)
    await Gathering(readings, max_bytes, request.isolation_level, call).run(request.min_bytes, request.max_wait_ms)
    call.takes_long = call.takes_long or len(readings) > LONG
    hints = LeaderHints(call)
    responses = await _by_topic(readings, request.isolation_level, call, hints)
    endpoints = [NodeEndpoint(**each._asdict()) for each in hints.endpoints()]
    return FetchResponse(responses=responses, node_endpoints=endpoints)


async def _name_once(request: FetchRequest, call: Call) -> list[Reading]:
    """Each partition in the place of its first mention, as its last one wants it."""
    readings: dict[tuple[str, TopicId, int], Reading] = {}
    for topic in request.topics:
        name, topic_id = _topic_of(topic.topic, topic.topic_id, call)
        for wanted in topic.partitions:
            if readings and call.turns.is_over():
                await call.turns.next()
            readings[name, topic_id, wanted.partition] = Reading(name, topic_id, wanted, wanted.fetch_offset)
    return list(readings.values())


def _topic_of(name: str, topic_id: bytes, call: Call) -> tuple[str, TopicId]:
    """Both names of a topic; the name is empty when the id is unknown."""
    if call.version < TOPIC_IDS_SINCE:
        return name, NO_TOPIC_ID
    topic = call.broker.image.topics_by_id.get(TopicId(topic_id))
    return (topic.name if topic is not None else ""), TopicId(topic_id)


async def _by_topic(
    readings: list[Reading], isolation_level: int, call: Call, hints: LeaderHints
) -> list[FetchableTopicResponse]:
    topics: list[FetchableTopicResponse] = []
    for reading in readings:
        if topics and call.turns.is_over():
            await call.turns.next()
        if not topics or topics[-1].topic != reading.topic or topics[-1].topic_id != reading.topic_id:
            topics.append(FetchableTopicResponse(topic=reading.topic, topic_id=reading.topic_id, partitions=[]))
        data = _partition_data(reading, isolation_level)
        if reading.error in MISLED and (hint := hints.find(reading.topic, reading.wanted.partition)) is not None:
            data = replace(data, current_leader=LeaderIdAndEpoch(**hint._asdict()))
        topics[-1].partitions.append(data)
    return topics


def _partition_data(reading: Reading, isolation_level: int) -> PartitionData:
    partition = reading.partition
    data = PartitionData(
        partition_index=reading.wanted.partition,
        error_code=reading.error,
        high_watermark=partition.high_watermark if partition else -1,
        last_stable_offset=partition.last_stable_offset if partition else -1,
        log_start_offset=partition.log.start_offset if partition else -1,
        aborted_transactions=[] if isolation_level == READ_COMMITTED else None,
        records=reading.data,
    )
    return data if reading.divergence is None else replace(data, diverging_epoch=reading.divergence)
