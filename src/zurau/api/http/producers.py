"""Producers: an id for each, and what they produce.

A message that is a JSON string is stored as its text, in UTF-8. Any other JSON is stored as it was written, and null
is a record without a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated

import msgspec
from msgspec import Meta

from zurau.api.http.messages import Asked, Call, Told
from zurau.api.http.topics import Name
from zurau.api.turns import InTurns
from zurau.broker import any_broker
from zurau.broker.last_seen import Kind
from zurau.broker.registered_clients import register_client, require_registered
from zurau.broker.topics import ensure_topic, find_topic
from zurau.errors import Refused
from zurau.ids import TopicPartition
from zurau.machines.controller.image import TopicImage
from zurau.pending import Pending, all_of, start
from zurau.records.builder import NewRecord, build_batch
from zurau.records.partitioner import partition_for_key
from zurau.settings import INT32_MAX, SECOND_MS
from zurau.wire.kafka.error_codes import ErrorCode

#: How long a message may take to be stored safely, leaders that are being elected included.
STORED_WITHIN_MS = 30 * SECOND_MS
#: Of one call: a batch is made in one go, while everybody else waits.
MESSAGES_MAX = 1000
#: A key is hashed in one go too.
KEY_CHARACTERS_MAX = 4096

_NULL = msgspec.Raw(b"null")

Partition = Annotated[int, Meta(ge=0, le=INT32_MAX, description="Where to. If it is not said, the key decides.")]
Key = Annotated[
    str, Meta(max_length=KEY_CHARACTERS_MAX, description="Messages with the same key go to the same partition.")
]


class ProducerToRegister(Asked):
    topic: Name


class RegisteredProducer(Told):
    producer_id: str


class Message(Asked):
    #: Any JSON.
    message: msgspec.Raw
    key: Key | None = None
    partition: Partition | None = None


class Produce(Asked):
    """Either `message`, with `key` and `partition`, or `messages`."""

    topic: Name
    producer_id: str
    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    key: Key | None = None
    partition: Partition | None = None
    messages: Annotated[list[Message], Meta(min_length=1, max_length=MESSAGES_MAX)] | None = None


class Place(Told):
    partition: int
    offset: int


class Places(Told):
    #: One for each message, in their order.
    messages: list[Place]


async def register(request: ProducerToRegister, call: Call) -> RegisteredProducer:
    """An id to produce to a topic with, which is made if there is none."""
    await ensure_topic(request.topic, call.client.caller, call.broker)
    return RegisteredProducer(await register_client(Kind.PRODUCER, request.topic, call.broker))


async def produce(request: Produce, call: Call) -> Place | Places:
    """Store a message, or several. They are safe when this is answered."""
    require_registered(Kind.PRODUCER, request.producer_id, request.topic, call.broker)
    topic = await find_topic(request.topic, call.broker)
    if request.messages is None:
        if request.message is msgspec.UNSET:
            raise Refused(HTTPStatus.BAD_REQUEST, "there is neither `message` nor `messages` in the request")
        (place,) = await _store([Message(request.message, request.key, request.partition)], topic, call)
        return place
    if request.message is not msgspec.UNSET or request.key is not None or request.partition is not None:
        raise Refused(HTTPStatus.BAD_REQUEST, "with `messages`, key and partition are said for each of them")
    return Places(await _store(request.messages, topic, call))


async def _store(messages: Sequence[Message], topic: TopicImage, call: Call) -> list[Place]:
    """One batch for each partition. Which of several failed cannot be said in one answer, so all are said to have."""
    chosen: dict[int, list[int]] = {}
    async for number, message in InTurns(enumerate(messages), call.turns):
        chosen.setdefault(_partition(message, topic, call), []).append(number)
    appends: list[Pending[list[tuple[int, Place]]]] = []
    async for partition, numbers in InTurns(chosen.items(), call.turns):
        records = [_record(messages[number], call) for number in numbers]
        appends.append(start(_append(TopicPartition(topic.name, partition), numbers, records, call)))
    await all_of(appends)
    places = dict(pair for append in appends for pair in append.result())
    return [places[number] for number in range(len(messages))]


async def _append(
    name: TopicPartition, numbers: Sequence[int], records: Sequence[NewRecord], call: Call
) -> list[tuple[int, Place]]:
    batch = memoryview(build_batch(records))
    appended = await any_broker.append(name, batch, STORED_WITHIN_MS, call.client.connection, call.broker)
    return [(number, Place(name.partition, appended.base_offset + place)) for place, number in enumerate(numbers)]


def _partition(message: Message, topic: TopicImage, call: Call) -> int:
    count = len(topic.partitions)
    if message.partition is not None:
        if message.partition >= count:
            raise Refused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"{topic.name!r} has partitions 0 to {count - 1}, and none with number {message.partition}",
            )
        return message.partition
    return partition_for_key(message.key.encode(), count) if message.key is not None else next(call.spread) % count


def _record(message: Message, call: Call) -> NewRecord:
    content = bytes(message.message)
    value: bytes | None = content
    if message.message == _NULL:
        value = None
    elif content[:1] == b'"':
        value = msgspec.json.decode(content, type=str).encode()
    key = None if message.key is None else message.key.encode()
    return NewRecord(key, value, timestamp=call.broker.clock.now_ms())
