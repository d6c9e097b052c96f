"""CreatePartitions: topics grow; they never shrink."""

from __future__ import annotations

from zurau.api.kafka.administration import change_each
from zurau.api.kafka.call import Call
from zurau.api.kafka.create_topics import too_many_partitions
from zurau.api.kafka.repeated import named_twice, repeated
from zurau.errors import Refused
from zurau.machines.controller.commands import CreatePartitions
from zurau.wire.kafka.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(request: CreatePartitionsRequest, call: Call) -> CreatePartitionsResponse:
    twice = await repeated([topic.name for topic in request.topics], call)
    once = [topic async for topic in call.in_turns(request.topics) if topic.name not in twice]
    refused = too_many_partitions([_added(topic, call) async for topic in call.in_turns(once)])
    if refused is not None:
        results = [_result(topic.name, refused) async for topic in call.in_turns(request.topics)]
        return CreatePartitionsResponse(results=results)
    changes = await change_each(
        once, lambda topic: _create(topic, request.validate_only, call), request.timeout_ms, call
    )
    results = [_result(topic.name, change) for topic, change in zip(once, changes, strict=True)]
    return CreatePartitionsResponse(results=results + [_result(name, named_twice()) for name in sorted(twice)])


def _added(topic: CreatePartitionsTopic, call: Call) -> int:
    present = call.broker.image.topics.get(topic.name)
    return 0 if present is None else topic.count - len(present.partitions)


async def _create(topic: CreatePartitionsTopic, validate_only: bool, call: Call) -> Refused | None:
    assignments = None
    if topic.assignments is not None:
        assignments = [assignment.broker_ids for assignment in topic.assignments]
    try:
        await call.broker.controller.ask(CreatePartitions(topic.name, topic.count, assignments, validate_only))
    except Refused as refused:
        return refused
    image = call.broker.image.topics.get(topic.name)
    if image is not None:
        await call.broker.opened(image.topic_id)
    return None


def _result(name: str, refused: Refused | None) -> CreatePartitionsTopicResult:
    if refused is None:
        return CreatePartitionsTopicResult(name=name)
    return CreatePartitionsTopicResult(name=name, error_code=refused.code, error_message=refused.message)
