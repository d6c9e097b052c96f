"""What registered consumers were handed and have not acknowledged, at the coordinators of their groups.

Only in memory: when it is lost, it is delivered again. What is acknowledged is committed as any group's offsets are.
"""

from __future__ import annotations

from collections.abc import Mapping

from zurau.broker.broker import Broker
from zurau.errors import Refused
from zurau.ids import Offset, TopicId, TopicPartition
from zurau.machines.groups.commands import CommitOffsets, FetchOffsets, NewOffset
from zurau.machines.machine import Command, Value
from zurau.wire.kafka.error_codes import ErrorCode


class Positions(Value):
    """Of one consumer, by partition; one that is not named begins at the start."""

    offsets: Mapping[int, Offset]


class FindPositions(Command[Positions]):
    """Where a consumer reads on."""

    consumer_id: str
    topic: str
    #: What it was handed before is acknowledged by this; or else it is as if it had not been.
    acknowledges: bool


class NoteDelivered(Command[None]):
    """A consumer is being handed what is below these offsets."""

    consumer_id: str
    topic_id: TopicId
    offsets: Mapping[int, Offset]


class ForgetDelivered(Command[None]):
    """A consumer gives back what it was handed."""

    consumer_id: str


async def find_positions_here(asked: FindPositions, broker: Broker) -> Positions:
    """Raises `Refused`."""
    runtime = broker.groups_of(asked.consumer_id)
    topic = broker.image.topics.get(asked.topic)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {asked.topic!r}")
    delivered = broker.groups.delivered_to(asked.consumer_id, topic.topic_id) if asked.acknowledges else {}
    if delivered:
        offsets = {
            TopicPartition(asked.topic, index): NewOffset(offset, topic_id=topic.topic_id)
            for index, offset in delivered.items()
        }
        committed = await runtime.submit(CommitOffsets(asked.consumer_id, -1, "", None, offsets))
        for code in committed.codes.values():
            if code is not ErrorCode.NONE:
                raise Refused(code, "what was delivered could not be acknowledged")
        broker.groups.forget_delivered(asked.consumer_id, delivered)
    names = tuple(TopicPartition(asked.topic, each.index) for each in topic.partitions)
    fetched = await runtime.submit(FetchOffsets(asked.consumer_id, names))
    return Positions({name.partition: found.offset for name, found in fetched.offsets.items() if found is not None})


def note_delivered_here(asked: NoteDelivered, broker: Broker) -> None:
    broker.groups_of(asked.consumer_id)
    broker.groups.note_delivered(asked.consumer_id, asked.topic_id, asked.offsets)


def forget_delivered_here(asked: ForgetDelivered, broker: Broker) -> None:
    broker.groups_of(asked.consumer_id)
    broker.groups.forget_delivered(asked.consumer_id)
