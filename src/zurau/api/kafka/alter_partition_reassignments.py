"""AlterPartitionReassignments: a partition can be told to stay where it is; there is no other broker to move it to."""

from __future__ import annotations

from collections.abc import Sequence

from zurau.api.kafka.call import Call
from zurau.errors import Refused
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(request: AlterPartitionReassignmentsRequest, call: Call) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[_answer(topic.name, wanted, call) async for wanted in call.in_turns(topic.partitions)],
            )
            async for topic in call.in_turns(request.topics)
        ],
    )


def _answer(topic: str, wanted: ReassignablePartition, call: Call) -> ReassignablePartitionResponse:
    try:
        _check(topic, wanted.partition_index, wanted.replicas, call)
    except Refused as refused:
        return ReassignablePartitionResponse(
            partition_index=wanted.partition_index, error_code=refused.code, error_message=refused.message
        )
    return ReassignablePartitionResponse(partition_index=wanted.partition_index)


def _check(name: str, index: int, replicas: Sequence[int] | None, call: Call) -> None:
    """Raises `Refused` unless the partition is where it shall be."""
    image = call.broker.image
    topic = image.topics.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{index}")
    if replicas is None:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{name}-{index} is not being moved")
    if len(set(replicas)) != len(replicas) or not replicas:
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{list(replicas)} is empty or names a broker twice")
    unknown = sorted(set(replicas) - set(image.brokers))
    if unknown:
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"there is no broker {unknown[0]}")
    if tuple(replicas) != topic.partitions[index].replicas:
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions are not moved between brokers yet")
