"""CreateTopics: each topic of the request is created, or refused, by itself."""

from __future__ import annotations

from collections.abc import Iterable

from zurau.api.kafka.administration import change_each
from zurau.api.kafka.call import Call
from zurau.api.kafka.repeated import named_twice, repeated
from zurau.broker.config_entries import topic_entries
from zurau.broker.topics import create_topic
from zurau.errors import Refused
from zurau.ids import NO_TOPIC_ID, TopicId
from zurau.machines.controller.commands import CreateTopic
from zurau.machines.controller.image import TopicImage
from zurau.machines.controller.topics import PARTITIONS_MAX
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


async def handle(request: CreateTopicsRequest, call: Call) -> CreateTopicsResponse:
    twice = await repeated([topic.name for topic in request.topics], call)
    once = [topic async for topic in call.in_turns(request.topics) if topic.name not in twice]
    refused = too_many_partitions(max(topic.num_partitions, len(topic.assignments), 1) for topic in once)
    if refused is not None:
        refusals = [_refused(topic.name, refused) async for topic in call.in_turns(request.topics)]
        return CreateTopicsResponse(topics=refusals)
    changes = await change_each(
        once, lambda topic: _create(topic, request.validate_only, call), request.timeout_ms, call
    )
    shown = _ShownConfigs(call)
    results = [
        _refused(topic.name, change) if isinstance(change, Refused) else _created(change, shown, request.validate_only)
        async for topic, change in call.in_turns(list(zip(once, changes, strict=True)))
    ]
    return CreateTopicsResponse(topics=results + [_refused(name, named_twice()) for name in sorted(twice)])


def too_many_partitions(counts: Iterable[int]) -> Refused | None:
    """Why a request that makes so many partitions in all is refused, as in Kafka; None if it is not."""
    total = sum(max(0, count) for count in counts)
    if total <= PARTITIONS_MAX:
        return None
    return Refused(
        ErrorCode.POLICY_VIOLATION, f"one request makes up to {PARTITIONS_MAX} partitions, not {total}; ask in parts"
    )


async def _create(topic: CreatableTopic, validate_only: bool, call: Call) -> TopicImage | Refused:
    try:
        return await create_topic(_command(topic, validate_only, call), call.broker)
    except Refused as refused:
        return refused


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


class _ShownConfigs:
    """The settings of new topics: worked out once for all that have the same configs."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._by_configs: dict[tuple[tuple[str, str], ...], list[CreatableTopicConfigs]] = {}

    def of(self, topic: TopicImage) -> list[CreatableTopicConfigs]:
        key = tuple(topic.configs.items())
        shown = self._by_configs.get(key)
        if shown is None:
            shown = self._by_configs[key] = [
                CreatableTopicConfigs(
                    name=entry.name,
                    value=entry.value,
                    read_only=entry.is_read_only,
                    config_source=entry.source,
                    is_sensitive=False,
                )
                for entry in topic_entries(topic.configs, self._call.broker)
            ]
        return shown


def _created(topic: TopicImage, shown: _ShownConfigs, validate_only: bool) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=NO_TOPIC_ID if validate_only else topic.topic_id,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs=shown.of(topic),
    )


def _refused(name: str, refused: Refused) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=refused.code, error_message=refused.message)
