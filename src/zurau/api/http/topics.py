"""Topics: which there are, one more, one fewer, and who has their partitions."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from zurau.api.http.health import NoQuestion
from zurau.api.http.messages import Asked, Call, Told
from zurau.api.turns import InTurns
from zurau.broker import topics
from zurau.broker.leadership import NO_LEADER, leadership_of, nodes
from zurau.ids import TopicId
from zurau.machines.controller.commands import CreateTopic
from zurau.machines.controller.image import PartitionImage, TopicImage
from zurau.machines.controller.names import NAME_CHARACTERS_MAX
from zurau.machines.controller.topics import DEFAULT, PARTITIONS_MAX
from zurau.settings import INT32_MAX

Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=NAME_CHARACTERS_MAX,
        description="A topic's name: letters, digits, dots, underscores and hyphens.",
    ),
]


class Topics(Told):
    topics: list[str]


class NewTopic(Asked):
    topic: Name
    #: As the broker's settings say, if it is not said here.
    partitions: Annotated[int, Meta(ge=1, le=PARTITIONS_MAX)] | None = None
    replication_factor: Annotated[int, Meta(ge=1, le=INT32_MAX)] | None = None


class Topic(Told):
    topic: str
    partitions: int
    replication_factor: int


class OneTopic(Asked):
    topic: Name


class Partition(Told):
    partition: int
    #: The broker that leads it; null while nobody does.
    leader: int | None
    replicas: list[int]
    in_sync_replicas: list[int]


class Partitions(Told):
    topic: str
    partitions: list[Partition]


async def list_topics(request: NoQuestion, call: Call) -> Topics:  # noqa: ARG001 - as all handlers
    """The names of all topics, without those that brokers keep for themselves."""
    known = InTurns(list(call.broker.image.topics.values()), call.turns)
    return Topics(topics=[topic.name async for topic in known if not topic.is_internal])


async def create_topic(request: NewTopic, call: Call) -> Topic:
    """Make a topic; it can be used when this is answered."""
    command = CreateTopic(
        request.topic,
        TopicId(call.broker.randomness.bytes(16)),
        DEFAULT if request.partitions is None else request.partitions,
        DEFAULT if request.replication_factor is None else request.replication_factor,
    )
    made = await topics.create_topic(command, call.broker)
    return Topic(topic=made.name, partitions=len(made.partitions), replication_factor=made.replication_factor)


async def delete_topic(request: OneTopic, call: Call) -> None:
    """Delete a topic with everything that is in it."""
    topic = await topics.find_topic(request.topic, call.broker)
    await topics.delete_topic(topic.topic_id, call.broker)


async def list_partitions(request: OneTopic, call: Call) -> Partitions:
    """Who leads each partition of a topic, and who has copies."""
    topic = await topics.find_topic(request.topic, call.broker)
    partitions = [_described(topic, each, call) async for each in InTurns(topic.partitions, call.turns)]
    return Partitions(topic=topic.name, partitions=partitions)


def _described(topic: TopicImage, partition: PartitionImage, call: Call) -> Partition:
    leadership = leadership_of(topic, partition, call.broker)
    return Partition(
        partition=partition.index,
        leader=None if leadership.leader_id == NO_LEADER else leadership.leader_id,
        replicas=nodes(partition.replicas),
        in_sync_replicas=leadership.in_sync,
    )
