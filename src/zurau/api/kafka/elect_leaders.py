"""ElectLeaders: let the preferred replica lead, or any that lives.

A partition of one replica is led by it or by nobody: either there is nothing to elect, or nobody to elect.
"""

from __future__ import annotations

from collections.abc import Iterable

from zurau.api.kafka.call import Call
from zurau.api.kafka.leadership import leadership_of
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED = 0
UNCLEAN = 1


async def handle(request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse:
    wanted = request.topic_partitions
    if request.election_type not in (PREFERRED, UNCLEAN) and wanted != []:
        return ElectLeadersResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            replica_election_results=[_not_elected(topic.topic, topic.partitions) for topic in wanted or ()],
        )
    if wanted is None:
        results = [_elect_all(topic, request.election_type, call) for topic in call.broker.image.topics]
    else:
        results = [_elect(topic.topic, topic.partitions, request.election_type, call) for topic in wanted]
    return ElectLeadersResponse(replica_election_results=results)


def _not_elected(topic: str, indexes: Iterable[int]) -> ReplicaElectionResult:
    refused = [
        PartitionResult(partition_id=index, error_code=ErrorCode.INVALID_REQUEST, error_message="no such election")
        for index in indexes
    ]
    return ReplicaElectionResult(topic=topic, partition_result=refused)


def _elect_all(topic: str, election_type: int, call: Call) -> ReplicaElectionResult:
    """Whoever asks for all partitions wants to hear only of those for which something was done or went wrong."""
    result = _elect(topic, range(len(call.broker.image.topics[topic].partitions)), election_type, call)
    told = [one for one in result.partition_result if one.error_code != ErrorCode.ELECTION_NOT_NEEDED]
    return ReplicaElectionResult(topic=topic, partition_result=told)


def _elect(topic: str, indexes: Iterable[int], election_type: int, call: Call) -> ReplicaElectionResult:
    return ReplicaElectionResult(
        topic=topic, partition_result=[_elect_one(topic, index, election_type, call) for index in indexes]
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
