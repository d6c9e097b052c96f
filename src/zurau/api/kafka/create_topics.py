"""CreateTopics: each topic of the request is created, or refused, by itself."""

from __future__ import annotations

from collections import Counter

from zurau.api.kafka.call import Call
from zurau.api.kafka.config_entries import topic_entries
from zurau.errors import Refused
from zurau.ids import NO_TOPIC_ID, TopicId
from zurau.machines.controller.commands import CreateTopic
from zurau.machines.controller.image import TopicImage
from zurau.pending import all_of, start
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


async def handle(request: CreateTopicsRequest, call: Call) -> CreateTopicsResponse:
    counts = Counter(topic.name for topic in request.topics)
    repeated = {name for name, count in counts.items() if count > 1}
    # All are asked for before the first is awaited, so that they share one flush.
    answers = [
        start(_create(topic, request.validate_only, call)) for topic in request.topics if topic.name not in repeated
    ]
    await all_of(answers)
    refusals = [_refused(name, Refused(ErrorCode.INVALID_REQUEST, "named twice")) for name in sorted(repeated)]
    return CreateTopicsResponse(topics=[answer.result() for answer in answers] + refusals)


async def _create(topic: CreatableTopic, validate_only: bool, call: Call) -> CreatableTopicResult:
    try:
        created = await call.broker.controller.ask(_command(topic, validate_only, call))
    except Refused as refused:
        return _refused(topic.name, refused)
    return _created(created, validate_only, call)


def _command(topic: CreatableTopic, validate_only: bool, call: Call) -> CreateTopic:
    assignments = {assignment.partition_index: assignment.broker_ids for assignment in topic.assignments}
    if len(assignments) != len(topic.assignments):
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition is assigned twice")
    return CreateTopic(
        name=topic.name,
        topic_id=TopicId(call.broker.randomness.bytes(16)),
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=assignments,
        configs={config.name: config.value for config in topic.configs},
        validate_only=validate_only,
    )


def _created(topic: TopicImage, validate_only: bool, call: Call) -> CreatableTopicResult:
    configs = [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=False,
        )
        for entry in topic_entries(topic.configs, call.broker)
    ]
    return CreatableTopicResult(
        name=topic.name,
        topic_id=NO_TOPIC_ID if validate_only else topic.topic_id,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs=configs,
    )


def _refused(name: str, refused: Refused) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=refused.code, error_message=refused.message)
