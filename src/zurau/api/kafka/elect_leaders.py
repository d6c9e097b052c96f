"""ElectLeaders: let the preferred replica lead, or any that lives.

A partition of one replica is led by it or by nobody: either there is nothing to elect, or nobody to elect.
"""

from __future__ import annotations

from collections.abc import Sequence

from zurau.api.kafka.call import Call
from zurau.broker.leadership import leadership_of
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

PREFERRED = 0
UNCLEAN = 1


async def handle(request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse:
    wanted = request.topic_partitions
    if request.election_type not in (PREFERRED, UNCLEAN) and wanted != []:
        return ElectLeadersResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            replica_election_results=[await _not_elected(topic, call) async for topic in call.in_turns(wanted or ())],
        )
    if wanted is None:
        names = list(call.broker.image.topics)
        results = [await _elect_all(topic, request.election_type, call) async for topic in call.in_turns(names)]
    else:
        results = [
            await _elect(topic.topic, topic.partitions, request.election_type, call)
            async for topic in call.in_turns(wanted)
        ]
    return ElectLeadersResponse(replica_election_results=results)


async def _not_elected(topic: TopicPartitions, call: Call) -> ReplicaElectionResult:
    refused = [
        PartitionResult(partition_id=index, error_code=ErrorCode.INVALID_REQUEST, error_message="no such election")
        async for index in call.in_turns(topic.partitions)
    ]
    return ReplicaElectionResult(topic=topic.topic, partition_result=refused)


async def _elect_all(topic: str, election_type: int, call: Call) -> ReplicaElectionResult:
    """Whoever asks for all partitions wants to hear only of those for which something was done or went wrong."""
    image = call.broker.image.topics.get(topic)
    result = await _elect(topic, range(0 if image is None else len(image.partitions)), election_type, call)
    told = [one for one in result.partition_result if one.error_code != ErrorCode.ELECTION_NOT_NEEDED]
    return ReplicaElectionResult(topic=topic, partition_result=told)


async def _elect(topic: str, indexes: Sequence[int], election_type: int, call: Call) -> ReplicaElectionResult:
    return ReplicaElectionResult(
        topic=topic,
        partition_result=[_elect_one(topic, index, election_type, call) async for index in call.in_turns(indexes)],
    )


def _elect_one(name: str, index: int, election_type: int, call: Call) -> PartitionResult:
    topic = call.broker.image.topics.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{index}"
    elif leadership_of(topic, topic.partitions[index], call.broker).error_code is ErrorCode.NONE:
        code, message = ErrorCode.ELECTION_NOT_NEEDED, f"{name}-{index} is led by its only replica"
    elif election_type == PREFERRED:
        code, message = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"the only replica of {name}-{index} is not there"
    else:
        code, message = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"no replica of {name}-{index} is there"
    return PartitionResult(partition_id=index, error_code=code, error_message=message)
