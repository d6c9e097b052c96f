"""What only a leader can do, done at whichever broker is asked: here if this one leads, or else there."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from contextlib import suppress
from typing import Any, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from zurau.broker.appending import append_here
from zurau.broker.broker import Broker
from zurau.broker.deliveries import (
    FindPositions,
    ForgetDelivered,
    NoteDelivered,
    Positions,
    find_positions_here,
    forget_delivered_here,
    note_delivered_here,
)
from zurau.broker.leadership import NO_LEADER, coordinator_of, leadership_of
from zurau.broker.reading_records import RecordsRead, Wanted, read_records_here
from zurau.broker.waiting import pause
from zurau.errors import Refused
from zurau.ids import BrokerId, TopicPartition
from zurau.machines.machine import Command
from zurau.partition.partition import Appended
from zurau.wire.kafka.error_codes import ErrorCode

T = TypeVar("T")

#: How often is looked whether somebody leads by now.
LOOK_EVERY_MS = 20
#: Nothing was done, and another may do it.
_ASK_AGAIN = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)


class AppendBatch(Command[Appended]):
    """Of a producer, with acks=all; the batch is beside it."""

    topic: str
    partition: int
    timeout_ms: int


class ReadRecords(Command[RecordsRead]):
    topic: str
    partition: int
    wanted: Wanted


async def append(
    name: TopicPartition, batch: memoryview, timeout_ms: int, client: Hashable, broker: Broker
) -> Appended:
    """Returns when it is committed. While nobody leads, waits for somebody who does. Raises `Refused`; with
    REQUEST_TIMED_OUT it may have been written."""

    async def at(leader: BrokerId, left_ms: int) -> Appended:
        if leader == broker.broker_id:
            return await append_here(name, batch, left_ms, client, broker)
        return await broker.calls.ask(leader, AppendBatch(name.topic, name.partition, left_ms), batch, left_ms)

    return await _at(lambda: _leader_of(name, broker), at, timeout_ms, broker)


async def read_records(
    name: TopicPartition, wanted: Wanted, timeout_ms: int, client: Hashable, broker: Broker
) -> RecordsRead:
    """While nobody leads, waits for somebody who does. Raises `Refused`."""

    async def at(leader: BrokerId, left_ms: int) -> RecordsRead:
        now = replace(wanted, wait_ms=min(wanted.wait_ms, left_ms))
        if leader == broker.broker_id:
            return await read_records_here(name, now, client, broker)
        return await broker.calls.ask(leader, ReadRecords(name.topic, name.partition, now), b"", now.wait_ms)

    return await _at(lambda: _leader_of(name, broker), at, timeout_ms, broker)


async def find_positions(asked: FindPositions, timeout_ms: int, broker: Broker) -> Positions:
    """Of a consumer, at the coordinator of its group. Raises `Refused`."""

    async def at(coordinator: BrokerId, left_ms: int) -> Positions:
        if coordinator == broker.broker_id:
            return await find_positions_here(asked, broker)
        return await broker.calls.ask(coordinator, asked, b"", left_ms)

    return await _at(lambda: coordinator_of(asked.consumer_id, broker), at, timeout_ms, broker)


async def forget_delivered(asked: ForgetDelivered, timeout_ms: int, broker: Broker) -> None:
    async def at(coordinator: BrokerId, left_ms: int) -> None:
        if coordinator == broker.broker_id:
            return forget_delivered_here(asked, broker)
        return await broker.calls.ask(coordinator, asked, b"", left_ms)

    await _at(lambda: coordinator_of(asked.consumer_id, broker), at, timeout_ms, broker)


def note_delivered(asked: NoteDelivered, broker: Broker) -> None:
    """Nobody waits for it: what is not noted is delivered again."""
    with suppress(Refused):
        coordinator = coordinator_of(asked.consumer_id, broker)
        if coordinator == broker.broker_id:
            note_delivered_here(asked, broker)
        else:
            broker.calls.ask(coordinator, asked, b"", timeout_ms=0)


async def _at(
    find: Callable[[], BrokerId],
    at: Callable[[BrokerId, int], Coroutine[Any, None, T]],
    timeout_ms: int,
    broker: Broker,
) -> T:
    """What is done at the broker that is to do it, given how much time is left."""
    deadline_ms = broker.clock.monotonic_ms() + timeout_ms
    while True:
        try:
            return await at(find(), max(1, int(deadline_ms - broker.clock.monotonic_ms())))
        except Refused as refused:
            if refused.code not in _ASK_AGAIN or broker.clock.monotonic_ms() >= deadline_ms:
                raise
        await pause(broker.clock, LOOK_EVERY_MS)


def _leader_of(name: TopicPartition, broker: Broker) -> BrokerId:
    topic = broker.image.topics.get(name.topic)
    if topic is None or not 0 <= name.partition < len(topic.partitions):
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}")
    leader = leadership_of(topic, topic.partitions[name.partition], broker).leader_id
    if leader == NO_LEADER:
        raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, f"nobody leads {name} at present")
    return leader


async def answer(name: str, content: msgspec.Raw, data: memoryview, broker: Broker) -> Any:
    """Another broker asks."""
    asked_type = _QUESTIONS.get(name)
    if asked_type is None:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"broker {broker.broker_id} does not know {name}")
    try:
        asked = msgspec.msgpack.decode(content, type=asked_type)
    except msgspec.MsgspecError as error:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{name} cannot be read: {error}") from error
    match asked:
        case AppendBatch(topic, index, timeout_ms):
            return await append_here(TopicPartition(topic, index), data, timeout_ms, None, broker)
        case ReadRecords(topic, index, wanted):
            return await read_records_here(TopicPartition(topic, index), wanted, None, broker)
        case FindPositions():
            return await find_positions_here(asked, broker)
        case NoteDelivered():
            return note_delivered_here(asked, broker)
        case ForgetDelivered():
            return forget_delivered_here(asked, broker)


Question = AppendBatch | ReadRecords | FindPositions | NoteDelivered | ForgetDelivered
_QUESTIONS: dict[str, type[Question]] = {each.__name__: each for each in get_args(Question)}
