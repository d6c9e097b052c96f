"""Which partitions a query reads: topics by name, topics by pattern, or partitions one by one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from zurau.client.cluster import Cluster
from zurau.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Named:
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """The whole name has to match. Kafka's internal topics never do."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Assigned:
    partitions: frozenset[TopicPartition]


Selection = Named | Matching | Assigned


def find_partitions(cluster: Cluster, selection: Selection) -> set[TopicPartition]:
    """Those of the selection that exist now."""
    match selection:
        case Named(topics):
            return _partitions_of(cluster, list(topics))
        case Assigned(partitions):
            return _partitions_of(cluster, sorted({partition.topic for partition in partitions})) & partitions
        case Matching(pattern):
            return _partitions_of(cluster, _matching(cluster, pattern))


def missing_from(selection: Selection, found: set[TopicPartition]) -> list[str]:
    """What the selection names and nobody has."""
    match selection:
        case Named(topics):
            there = {partition.topic for partition in found}
            return [f"topic {topic!r}" for topic in topics if topic not in there]
        case Assigned(partitions):
            return [f"partition {partition}" for partition in sorted(partitions - found)]
        case Matching():
            return []


def _matching(cluster: Cluster, pattern: str) -> list[str]:
    # Metadata keeps topics that an answer does not mention; a deleted one must not linger here.
    cluster.forget(list(cluster.metadata.topics))
    cluster.retry(cluster.refresh)
    compiled = re.compile(pattern)
    known = cluster.metadata.topics.values()
    return sorted(topic.name for topic in known if not topic.is_internal and compiled.fullmatch(topic.name))


def _partitions_of(cluster: Cluster, topics: list[str]) -> set[TopicPartition]:
    if topics:
        cluster.retry(lambda: cluster.refresh(topics))
    known = cluster.metadata.topics
    return {
        TopicPartition(topic, partition.index)
        for topic in topics
        if topic in known
        for partition in known[topic].partitions
    }
