"""What only a leader can do, done at whichever broker is asked: here if this one leads, or else there."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from zurau.broker.appending import append_here
from zurau.broker.broker import Broker
from zurau.broker.leadership import NO_LEADER, leadership_of
from zurau.broker.waiting import pause
from zurau.errors import Refused
from zurau.ids import BrokerId, TopicPartition
from zurau.machines.machine import Command
from zurau.partition.partition import Appended
from zurau.wire.kafka.error_codes import ErrorCode

#: How often is looked whether somebody leads by now.
LOOK_EVERY_MS = 20
#: Nothing was done, and another may do it.
_ASK_AGAIN = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE)


class AppendBatch(Command[Appended]):
    """Of a producer, with acks=all; the batch is beside it."""

    topic: str
    partition: int
    timeout_ms: int


async def append(
    name: TopicPartition, batch: memoryview, timeout_ms: int, client: Hashable, broker: Broker
) -> Appended:
    """Returns when it is committed. While nobody leads, waits for somebody who does. Raises `Refused`; with
    REQUEST_TIMED_OUT it may have been written."""
    deadline_ms = broker.clock.monotonic_ms() + timeout_ms
    while True:
        left_ms = max(1, int(deadline_ms - broker.clock.monotonic_ms()))
        try:
            leader = _leader_of(name, broker)
            if leader == broker.broker_id:
                return await append_here(name, batch, left_ms, client, broker)
            return await broker.calls.ask(leader, AppendBatch(name.topic, name.partition, left_ms), batch, left_ms)
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
    match name:
        case AppendBatch.__name__:
            try:
                asked = msgspec.msgpack.decode(content, type=AppendBatch)
            except msgspec.MsgspecError as error:
                raise Refused(ErrorCode.INVALID_REQUEST, f"{name} cannot be read: {error}") from error
            partition = TopicPartition(asked.topic, asked.partition)
            return await append_here(partition, data, asked.timeout_ms, None, broker)
        case _:
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, f"broker {broker.broker_id} does not know {name}")
