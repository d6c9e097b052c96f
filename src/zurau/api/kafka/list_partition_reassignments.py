"""ListPartitionReassignments: which partitions are on their way to other brokers, and what is still to be done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zurau.api.kafka.call import Call
from zurau.machines.controller.image import TopicImage
from zurau.wire.kafka.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def handle(request: ListPartitionReassignmentsRequest, call: Call) -> ListPartitionReassignmentsResponse:
    topics = call.broker.image.topics
    wanted: list[tuple[str, Iterable[int] | None]] = [(name, None) for name in topics]
    if request.topics is not None:
        wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
    found = []
    async for name, indexes in call.in_turns(wanted):
        topic = topics.get(name)
        ongoing = list(_ongoing(topic, indexes)) if topic is not None else []
        if ongoing:
            found.append(OngoingTopicReassignment(name=name, partitions=ongoing))
    return ListPartitionReassignmentsResponse(topics=found)


def _ongoing(topic: TopicImage, indexes: Iterable[int] | None) -> Iterator[OngoingPartitionReassignment]:
    wanted = None if indexes is None else set(indexes)
    for partition in topic.partitions:
        if partition.target and (wanted is None or partition.index in wanted):
            yield OngoingPartitionReassignment(
                partition_index=partition.index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
