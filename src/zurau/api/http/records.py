"""What a partition holds, read from any offset."""

from __future__ import annotations

from base64 import b64encode
from http import HTTPStatus
from typing import Annotated, Literal

from msgspec import Meta

from zurau.api.http.messages import Asked, Call, Told
from zurau.api.http.topics import Name
from zurau.api.turns import InTurns
from zurau.broker import any_broker
from zurau.broker.reading_records import NO_OFFSET, ReadRecord, RecordsRead, Wanted
from zurau.broker.topics import find_topic
from zurau.errors import Refused
from zurau.ids import Offset, TopicPartition
from zurau.settings import INT32_MAX, INT64_MAX, KIB, SECOND_MS

#: Of one answer: it is made in one go, while everybody else waits.
ANSWERED_MAX = 1000
#: Keys and values of one answer, unless the first record is larger.
RECORD_BYTES_MAX = 256 * KIB
#: A client that waits holds a connection.
WAIT_MS_MAX = 30 * SECOND_MS
#: How long somebody who leads is waited for, besides.
LED_WITHIN_MS = 5 * SECOND_MS


Encoding = Literal["utf-8", "base64"]


class RecordsAsked(Asked):
    topic: Name
    partition: Annotated[int, Meta(ge=0, le=INT32_MAX)]
    offset: (
        Annotated[int, Meta(ge=0, le=INT64_MAX, description="Where to begin. If it is not said, at the start.")] | None
    ) = None
    max: Annotated[int, Meta(ge=1, le=ANSWERED_MAX, description="Records at most.")] = 100
    wait_ms: Annotated[int, Meta(ge=0, le=WAIT_MS_MAX, description="How long to wait for a first record.")] = 0


class RecordTold(Told):
    offset: int
    timestamp: int
    key: str | None
    message: str | None
    #: Of key and message: as text if both are text.
    encoding: Encoding


class RecordsTold(Told):
    records: list[RecordTold]
    #: Where to read on.
    next_offset: int
    #: The end of what can be read now.
    high_watermark: int


async def read(request: RecordsAsked, call: Call) -> RecordsTold:
    """Records of a partition from an offset on; waits for a first one if it is asked to."""
    topic = await find_topic(request.topic, call.broker)
    offset = NO_OFFSET if request.offset is None else request.offset
    read = await read_at(TopicPartition(topic.name, request.partition), offset, request.max, request.wait_ms, call)
    records = [_told(record) async for record in InTurns(read.records, call.turns)]
    return RecordsTold(records, read.next_offset, read.high_watermark)


async def read_at(name: TopicPartition, offset: Offset, count: int, wait_ms: int, call: Call) -> RecordsRead:
    """As much as there is memory for, wherever the partition is led."""
    wanted = Wanted(offset, count, min(RECORD_BYTES_MAX, await _room(wait_ms, call)), wait_ms)
    client = call.client.connection
    return await any_broker.read_records(name, wanted, wait_ms + LED_WITHIN_MS, client, call.broker)


async def _room(wait_ms: int, call: Call) -> int:
    """How much an answer may take now, as for those who fetch."""
    if call.client.responses is None:
        return RECORD_BYTES_MAX
    memory = call.client.responses.memory
    room = memory.room() or await memory.wait_for_room(wait_ms, call.broker.clock)
    if not room:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "there is no memory for answers now: others do not take theirs")
    return room


def _told(record: ReadRecord) -> RecordTold:
    return RecordTold(record.offset, record.timestamp, *text_of(record))


def text_of(record: ReadRecord) -> tuple[str | None, str | None, Encoding]:
    """Key, message and how they are told."""
    try:
        return _text(record.key), _text(record.value), "utf-8"
    except UnicodeDecodeError:
        return _packed(record.key), _packed(record.value), "base64"


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode()


def _packed(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()
