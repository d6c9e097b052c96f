"""Fetch: read batches from some partitions, waiting for more when there is too little.

Batches are passed on as they are stored. A partition that is named more than once is read once, as its last mention
says, and answered once: so does Kafka. A client with a session (KIP-227) names its partitions once, and is told of
those of which there is something to tell.
"""

from __future__ import annotations

from msgspec.structs import replace

from zurau.api.kafka.call import LONG, Call
from zurau.api.kafka.fetch_session import (
    FIRST_EPOCH,
    NO_SESSION_EPOCH,
    ClientSession,
    change,
    continued_session,
    find_session,
)
from zurau.api.kafka.gathering import READ_COMMITTED, Gathering
from zurau.api.kafka.leader_hints import MISLED, LeaderHints
from zurau.api.kafka.reading import READING_BYTES, Reading, Readings
from zurau.broker.fetch_sessions import NO_SESSION_ID
from zurau.errors import Refused
from zurau.wire.kafka.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)


async def handle(request: FetchRequest, call: Call) -> FetchResponse:
    if request.session_epoch in (NO_SESSION_EPOCH, FIRST_EPOCH):
        return await _fetch_all(request, call)
    try:
        session = continued_session(request, call)
    except Refused as refused:
        return FetchResponse(error_code=refused.code, responses=[])
    return await _fetch_changed(session, request, call)


async def _fetch_all(request: FetchRequest, call: Call) -> FetchResponse:
    """Of one that names all its partitions, and perhaps wants a session for them."""
    if request.session_id != NO_SESSION_ID:
        before = find_session(request.session_id, call)
        if before is not None:
            before.end()
    readings = Readings()
    await change(readings, request, call)
    held_bytes = READING_BYTES * len(readings)
    call.connection.waiting_bytes += held_bytes
    session_id = NO_SESSION_ID
    try:
        gathering = Gathering(readings, request, call)
        await gathering.run(request.min_bytes, request.max_wait_ms)
        if request.session_epoch == FIRST_EPOCH and len(readings):
            session = ClientSession(readings, call)
            if session.begin():
                session_id = session.session_id
                await gathering.settle()
    finally:
        call.connection.waiting_bytes -= held_bytes
        answered = list(readings) if session_id != NO_SESSION_ID else readings.disband()
    return await _answer(answered, session_id, request.isolation_level, call)


async def _fetch_changed(session: ClientSession, request: FetchRequest, call: Call) -> FetchResponse:
    """Of one that names what is not as it was in the fetch before."""
    readings = session.readings
    session.advance()
    await change(readings, request, call)
    session.count()
    if not len(readings):
        session.end()
        return FetchResponse(responses=[])
    gathering = Gathering(readings, request, call)
    await gathering.run(request.min_bytes, request.max_wait_ms)
    await gathering.settle()
    news = []
    async for reading in call.in_turns(gathering.looked_at):
        if reading.has_news:
            news.append(reading)
        else:
            reading.told()
    return await _answer(news, session.session_id, request.isolation_level, call)


async def _answer(readings: list[Reading], session_id: int, isolation_level: int, call: Call) -> FetchResponse:
    call.takes_long = call.takes_long or len(readings) > LONG
    turns, hints = call.turns, LeaderHints(call)
    topics: list[FetchableTopicResponse] = []
    topic: FetchableTopicResponse | None = None
    for reading in readings:
        if topic is not None and turns.is_over():
            await turns.next()
        if topic is None or topic.topic != reading.topic or topic.topic_id != reading.topic_id:
            topic = FetchableTopicResponse(topic=reading.topic, topic_id=reading.topic_id, partitions=[])
            topics.append(topic)
        data = _partition_data(reading, isolation_level)
        if reading.error in MISLED and (hint := hints.find(reading.topic, reading.wanted.partition)) is not None:
            data = replace(data, current_leader=LeaderIdAndEpoch(**hint._asdict()))
        topic.partitions.append(data)
        if session_id != NO_SESSION_ID:
            reading.told()
    endpoints = hints.endpoints()
    if not endpoints:
        return FetchResponse(session_id=session_id, responses=topics)
    nodes = [NodeEndpoint(**each._asdict()) for each in endpoints]
    return FetchResponse(session_id=session_id, responses=topics, node_endpoints=nodes)


def _partition_data(reading: Reading, isolation_level: int) -> PartitionData:
    partition = reading.partition
    data = PartitionData(
        partition_index=reading.wanted.partition,
        error_code=reading.error,
        high_watermark=partition.high_watermark if partition else -1,
        last_stable_offset=partition.last_stable_offset if partition else -1,
        log_start_offset=partition.log.start_offset if partition else -1,
        aborted_transactions=[] if isolation_level == READ_COMMITTED else None,
        preferred_read_replica=reading.preferred,
        records=reading.data,
    )
    return data if reading.divergence is None else replace(data, diverging_epoch=reading.divergence)
