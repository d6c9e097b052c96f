"""CreatePartitions: topics grow; they never shrink."""

from __future__ import annotations

from collections import Counter

from zurau.api.kafka.call import Call
from zurau.errors import Refused
from zurau.machines.controller.commands import CreatePartitions
from zurau.pending import all_of, start
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(request: CreatePartitionsRequest, call: Call) -> CreatePartitionsResponse:
    counts = Counter(topic.name for topic in request.topics)
    repeated = {name for name, count in counts.items() if count > 1}
    answers = [
        start(_create(topic, request.validate_only, call)) for topic in request.topics if topic.name not in repeated
    ]
    await all_of(answers)
    refusals = [_refused(name, Refused(ErrorCode.INVALID_REQUEST, "named twice")) for name in sorted(repeated)]
    return CreatePartitionsResponse(results=[answer.result() for answer in answers] + refusals)


async def _create(topic: CreatePartitionsTopic, validate_only: bool, call: Call) -> CreatePartitionsTopicResult:
    assignments = None
    if topic.assignments is not None:
        assignments = [assignment.broker_ids for assignment in topic.assignments]
    try:
        await call.broker.controller.ask(CreatePartitions(topic.name, topic.count, assignments, validate_only))
    except Refused as refused:
        return _refused(topic.name, refused)
    return CreatePartitionsTopicResult(name=topic.name)


def _refused(name: str, refused: Refused) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=refused.code, error_message=refused.message)
