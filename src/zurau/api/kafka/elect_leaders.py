"""ElectLeaders: let the preferred replica lead; or, where nobody leads, any that lives (unclean).

The preferred replica of a partition is its first. The controller moves leaders that it names; where replicas elect
theirs, the present leader is asked to hand over, and the answer waits for that. An unclean election would make the
other replicas give up records that were acknowledged, and no replica does that: where nobody leads, the answer says
whom to bring back.
"""

from __future__ import annotations

from collections.abc import Sequence

from zurau.api.kafka.call import Call
from zurau.broker.leadership import leadership_of
from zurau.broker.waiting import until
from zurau.errors import Refused
from zurau.ids import PartitionId, TopicPartition
from zurau.machines.controller.commands import ElectLeader
from zurau.machines.controller.image import PartitionImage, TopicImage
from zurau.pending import start
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
#: How long a handover is waited for, at most, and how often it is looked for.
HANDOVER_MS = 2000
LOOK_EVERY_MS = 20


async def handle(request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse:
    wanted = request.topic_partitions
    if request.election_type not in (PREFERRED, UNCLEAN) and wanted != []:
        return ElectLeadersResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            replica_election_results=[await _not_elected(topic, call) async for topic in call.in_turns(wanted or ())],
        )
    if wanted is None:
        names = list(call.broker.image.topics)
        results = [await _elect_all(topic, request, call) async for topic in call.in_turns(names)]
    else:
        results = [await _elect(topic.topic, topic.partitions, request, call) async for topic in call.in_turns(wanted)]
    return ElectLeadersResponse(replica_election_results=results)


async def _not_elected(topic: TopicPartitions, call: Call) -> ReplicaElectionResult:
    refused = [
        PartitionResult(partition_id=index, error_code=ErrorCode.INVALID_REQUEST, error_message="no such election")
        async for index in call.in_turns(topic.partitions)
    ]
    return ReplicaElectionResult(topic=topic.topic, partition_result=refused)


async def _elect_all(topic: str, request: ElectLeadersRequest, call: Call) -> ReplicaElectionResult:
    """Whoever asks for all partitions wants to hear only of those for which something was done or went wrong."""
    image = call.broker.image.topics.get(topic)
    result = await _elect(topic, range(0 if image is None else len(image.partitions)), request, call)
    told = [one for one in result.partition_result if one.error_code != ErrorCode.ELECTION_NOT_NEEDED]
    return ReplicaElectionResult(topic=topic, partition_result=told)


async def _elect(topic: str, indexes: Sequence[int], request: ElectLeadersRequest, call: Call) -> ReplicaElectionResult:
    elections = [start(_elect_one(topic, index, request, call)) async for index in call.in_turns(indexes)]
    return ReplicaElectionResult(topic=topic, partition_result=[await each for each in elections])


async def _elect_one(name: str, index: int, request: ElectLeadersRequest, call: Call) -> PartitionResult:
    try:
        topic = call.broker.image.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{index}")
        partition = topic.partitions[index]
        _check_needed(topic, partition, request.election_type, call)
        if topic.is_in_sync_mode:
            is_unclean = request.election_type == UNCLEAN
            await call.broker.controller.ask(ElectLeader(PartitionId(topic.topic_id, index), is_unclean))
        else:
            await _handed_over(topic, partition, request.timeout_ms, call)
    except Refused as refused:
        return PartitionResult(partition_id=index, error_code=refused.code, error_message=refused.message)
    return PartitionResult(partition_id=index)


def _check_needed(topic: TopicImage, partition: PartitionImage, election_type: int, call: Call) -> None:
    leadership = leadership_of(topic, partition, call.broker)
    name = TopicPartition(topic.name, partition.index)
    if leadership.error_code is ErrorCode.NONE:
        if election_type == UNCLEAN or leadership.leader_id == partition.preferred.broker:
            raise Refused(ErrorCode.ELECTION_NOT_NEEDED, f"{name} is led by broker {leadership.leader_id}")
    elif election_type != PREFERRED and not topic.is_in_sync_mode:  # or else a leader is waited for, who hands over
        raise Refused(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            f"of {name} too few replicas are there to elect a leader: bring a majority of the brokers "
            f"{', '.join(map(str, partition.replicas))} back",
        )


async def _handed_over(topic: TopicImage, partition: PartitionImage, timeout_ms: int, call: Call) -> None:
    key, name = PartitionId(topic.topic_id, partition.index), TopicPartition(topic.name, partition.index)

    def is_led_by_preferred() -> bool:
        call.broker.leader_moves.ask(key, name)  # again: what the leader knows of the cluster may be older
        return leadership_of(topic, partition, call.broker).leader_id == partition.preferred.broker

    at_most_ms = min(HANDOVER_MS, timeout_ms)
    if not await until(call.broker.clock, is_led_by_preferred, every_ms=LOOK_EVERY_MS, at_most_ms=at_most_ms):
        raise Refused(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"broker {partition.preferred.broker} is not there, not caught up, or drained",
        )
