"""How far a group has read: the committed offset of each partition, kept by the group's coordinator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from zurau.client.cluster.cluster import Cluster
from zurau.client.errors import check
from zurau.ids import Offset, TopicPartition
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from zurau.wire.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

#: For commits by somebody who is not a member, which only an empty group takes.
NO_GENERATION = -1


def fetch_offsets(
    cluster: Cluster, group: str, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, Offset]:
    """The committed offsets, of some partitions or of all; those without one are left out."""
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
            for name, indexes in _by_topic(partitions).items()
        ]
    asked = OffsetFetchRequestGroup(group_id=group, topics=topics)
    return cluster.retry(lambda: _fetch(cluster, group, OffsetFetchRequest(groups=[asked], require_stable=True)))


def commit_offsets(
    cluster: Cluster,
    group: str,
    offsets: Mapping[TopicPartition, Offset],
    *,
    generation: int = NO_GENERATION,
    member_id: str = "",
) -> None:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for partition, offset in offsets.items():
        committed = OffsetCommitRequestPartition(
            partition_index=partition.partition, committed_offset=offset, committed_metadata=""
        )
        topics.setdefault(partition.topic, []).append(committed)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )
    cluster.retry(lambda: _commit(cluster, group, request))


def _fetch(cluster: Cluster, group: str, request: OffsetFetchRequest) -> dict[TopicPartition, Offset]:
    answer = cluster.ask_coordinator(group, request).groups[0]
    check(answer.error_code, f"asking for the offsets of group {group!r}")
    found = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            check(partition.error_code, f"asking for the offset of group {group!r} in {topic.name!r}")
            if partition.committed_offset >= 0:
                found[TopicPartition(topic.name, partition.partition_index)] = partition.committed_offset
    return found


def _commit(cluster: Cluster, group: str, request: OffsetCommitRequest) -> None:
    for topic in cluster.ask_coordinator(group, request).topics:
        for partition in topic.partitions:
            what = f"committing offset of group {group!r} in {topic.name}-{partition.partition_index}"
            check(partition.error_code, what)


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics
