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
    before = find_session(request.session_id, call)
    if before is not None:
        before.end()
    readings = Readings()
    await change(readings, request, call)
    held_bytes = READING_BYTES * len(readings)
    call.connection.waiting_bytes += held_bytes
    session_id = NO_SESSION_ID
    try:
        gathering = await _gather(readings, request, call)
        if request.session_epoch == FIRST_EPOCH and len(readings):
            session = ClientSession(readings, call)
            if session.begin():
                session_id = session.session_id
                await gathering.settle()
    finally:
        call.connection.waiting_bytes -= held_bytes
        if session_id == NO_SESSION_ID:
            readings.close()
    return await _answer(list(readings), session_id, request.isolation_level, call)


async def _fetch_changed(session: ClientSession, request: FetchRequest, call: Call) -> FetchResponse:
    """Of one that names what is not as it was in the fetch before."""
    readings = session.readings
    session.advance()
    await change(readings, request, call)
    session.count()
    if not len(readings):
        session.end()
        return FetchResponse(responses=[])
    gathering = await _gather(readings, request, call)
    await gathering.settle()
    news = []
    async for reading in call.in_turns(gathering.looked_at):
        if reading.has_news:
            news.append(reading)
        else:
            reading.told()
    return await _answer(news, session.session_id, request.isolation_level, call)


async def _gather(readings: Readings, request: FetchRequest, call: Call) -> Gathering:
    gathering = Gathering(readings, request, call)
    await gathering.run(request.min_bytes, request.max_wait_ms)
    return gathering


async def _answer(readings: list[Reading], session_id: int, isolation_level: int, call: Call) -> FetchResponse:
    call.takes_long = call.takes_long or len(readings) > LONG
    hints = LeaderHints(call)
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
        reading.told()
    endpoints = [NodeEndpoint(**each._asdict()) for each in hints.endpoints()]
    return FetchResponse(session_id=session_id, responses=topics, node_endpoints=endpoints)


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
