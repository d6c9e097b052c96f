"""Consumers: an id for each, and messages one after the other, each until it is acknowledged.

A consumer is handed what follows on what it has acknowledged. Its next call acknowledges what it was handed before; so
does `ack`, and `nack` gives it back. Positions are committed offsets of a group with the consumer's id. That something
was handed out is noted when the answer leaves, at that group's coordinator, in memory: when that is lost, or a client
has gone before its answer, it is handed out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from zurau.api.http.messages import Asked, Call, Told
from zurau.api.http.records import ANSWERED_MAX, LED_WITHIN_MS, WAIT_MS_MAX, Encoding, read_at, text_of
from zurau.api.http.topics import Name
from zurau.broker import any_broker
from zurau.broker.deliveries import FindPositions, ForgetDelivered, NoteDelivered
from zurau.broker.last_seen import Kind
from zurau.broker.reading_records import NO_OFFSET, ReadRecord, RecordsRead
from zurau.broker.registered_clients import register_client, require_registered
from zurau.broker.topics import ensure_topic, find_topic
from zurau.broker.waiting import with_timeout
from zurau.errors import Refused
from zurau.ids import Offset, TopicPartition
from zurau.machines.controller.image import TopicImage
from zurau.pending import Pending, any_of, start
from zurau.settings import INT32_MAX
from zurau.wire.kafka.error_codes import ErrorCode


class ConsumerToRegister(Asked):
    topic: Name


class RegisteredConsumer(Told):
    consumer_id: str


class Consumer(Asked):
    topic: Name
    consumer_id: str


class Consume(Asked):
    topic: Name
    consumer_id: str
    partition: Annotated[int, Meta(ge=0, le=INT32_MAX, description="Only this one.")] | None = None
    wait_ms: Annotated[int, Meta(ge=0, le=WAIT_MS_MAX, description="How long to wait for a first message.")] = 0
    max: Annotated[int, Meta(ge=1, le=ANSWERED_MAX, description="So many at most, in a list.")] | None = None


class Consumed(Told):
    partition: int
    offset: int
    timestamp: int
    key: str | None
    message: str | None
    encoding: Encoding


class ConsumedList(Told):
    #: Of one partition, in its order.
    messages: list[Consumed]


class Size(Told):
    size: int


async def register(request: ConsumerToRegister, call: Call) -> RegisteredConsumer:
    """An id to consume a topic with, from its start. The topic is made if there is none."""
    await ensure_topic(request.topic, call.client.caller, call.broker)
    return RegisteredConsumer(await register_client(Kind.CONSUMER, request.topic, call.broker))


async def consume(request: Consume, call: Call) -> Consumed | ConsumedList | None:
    """The next message, or several, or nothing (204). Acknowledges what was handed out before."""
    topic = await _topic(request.consumer_id, request.topic, call)
    positions = await _positions(request.consumer_id, topic, call, acknowledges=True)
    if request.partition is not None:
        if request.partition not in positions:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic.name!r} has no partition {request.partition}")
        positions = {request.partition: positions[request.partition]}
    found = await _next(topic.name, positions, request, call)
    if found is None:
        return None
    partition, read = found
    # Nothing is waited for from here on: a client that has gone was not handed anything.
    any_broker.note_delivered(
        NoteDelivered(request.consumer_id, topic.topic_id, {partition: read.next_offset}), call.broker
    )
    messages = [_told(partition, record) for record in read.records]
    return messages[0] if request.max is None else ConsumedList(messages)


async def acknowledge(request: Consumer, call: Call) -> None:
    """Acknowledge what was handed out."""
    topic = await _topic(request.consumer_id, request.topic, call)
    await _positions(request.consumer_id, topic, call, acknowledges=True)


async def give_back(request: Consumer, call: Call) -> None:
    """Give back what was handed out; it is handed out again."""
    await _topic(request.consumer_id, request.topic, call)
    await any_broker.forget_delivered(ForgetDelivered(request.consumer_id), LED_WITHIN_MS, call.broker)


async def size(request: Consumer, call: Call) -> Size:
    """How many messages are left, with those that were handed out and are not acknowledged."""
    topic = await _topic(request.consumer_id, request.topic, call)
    positions = await _positions(request.consumer_id, topic, call, acknowledges=False)
    left = 0
    for partition, offset in positions.items():
        read = await _read(topic.name, partition, offset, 1, 0, call)
        first = read.records[0].offset if read.records else read.next_offset
        left += read.high_watermark - first
    return Size(left)


async def _topic(consumer_id: str, name: str, call: Call) -> TopicImage:
    require_registered(Kind.CONSUMER, consumer_id, name, call.broker)
    return await find_topic(name, call.broker)


async def _positions(consumer_id: str, topic: TopicImage, call: Call, *, acknowledges: bool) -> dict[int, Offset]:
    """Of every partition."""
    asked = FindPositions(consumer_id, topic.name, acknowledges)
    found = await any_broker.find_positions(asked, LED_WITHIN_MS, call.broker)
    return {each.index: found.offsets.get(each.index, NO_OFFSET) for each in topic.partitions}


async def _next(
    topic: str, positions: dict[int, Offset], request: Consume, call: Call
) -> tuple[int, RecordsRead] | None:
    """From one partition after the other, so that all get their turn; or else from whichever has something first."""
    count = request.max or 1
    order = sorted(positions)
    first = next(call.spread) % len(order)
    for partition in (*order[first:], *order[:first]):
        read = await _read(topic, partition, positions[partition], count, 0, call)
        if read.records:
            return partition, read
    if not request.wait_ms:
        return None
    return await _first(topic, {partition: positions[partition] for partition in order}, count, request.wait_ms, call)


async def _first(
    topic: str, positions: dict[int, Offset], count: int, wait_ms: int, call: Call
) -> tuple[int, RecordsRead] | None:
    """The first partition in which something comes in time."""
    reads = {
        partition: start(_read(topic, partition, offset, count, wait_ms, call))
        for partition, offset in positions.items()
    }
    try:
        deadline_ms = call.broker.clock.monotonic_ms() + wait_ms
        waiting: Sequence[Pending[RecordsRead]] = list(reads.values())
        while waiting:
            await with_timeout(deadline_ms - call.broker.clock.monotonic_ms(), any_of(waiting), call.broker.clock)
            for partition, read in reads.items():
                if read.is_done and read.error is None and read.result().records:
                    return partition, read.result()
            if call.broker.clock.monotonic_ms() >= deadline_ms:
                return None
            waiting = [read for read in waiting if not read.is_done]
        return None
    finally:
        for read in reads.values():
            read.end()


async def _read(topic: str, partition: int, offset: Offset, count: int, wait_ms: int, call: Call) -> RecordsRead:
    """What retention has removed cannot be had any more: it goes on with what is left."""
    name = TopicPartition(topic, partition)
    try:
        return await read_at(name, offset, count, wait_ms, call)
    except Refused as refused:
        if refused.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            raise
        return await read_at(name, NO_OFFSET, count, wait_ms, call)


def _told(partition: int, record: ReadRecord) -> Consumed:
    key, message, encoding = text_of(record)
    return Consumed(partition, record.offset, record.timestamp, key, message, encoding)
