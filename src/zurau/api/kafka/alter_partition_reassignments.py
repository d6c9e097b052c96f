"""AlterPartitionReassignments: other brokers for partitions, or (without any) those that they had before.

The answer says that a reassignment has begun; ListPartitionReassignments shows what is still under way.
"""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.broker.lost_replicas import new_name
from zurau.errors import Refused
from zurau.ids import PartitionId
from zurau.machines.controller.commands import ReassignPartition
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(request: AlterPartitionReassignmentsRequest, call: Call) -> AlterPartitionReassignmentsResponse:
    may_change = request.allow_replication_factor_change
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    await _answer(topic.name, wanted, may_change, call)
                    async for wanted in call.in_turns(topic.partitions)
                ],
            )
            async for topic in call.in_turns(request.topics)
        ],
    )


async def _answer(
    name: str, wanted: ReassignablePartition, may_change_factor: bool, call: Call
) -> ReassignablePartitionResponse:
    index, broker = wanted.partition_index, call.broker
    try:
        topic = broker.image.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{index}")
        key = PartitionId(topic.topic_id, index)
        replicas = None if wanted.replicas is None else tuple(wanted.replicas)
        directory = new_name(broker.randomness)
        await broker.controller.ask(ReassignPartition(key, replicas, directory, may_change_factor))
    except Refused as refused:
        return ReassignablePartitionResponse(
            partition_index=index, error_code=refused.code, error_message=refused.message
        )
    return ReassignablePartitionResponse(partition_index=index)
