"""What changed for brokers between two images, when a snapshot has taken the place of the records in between."""

from __future__ import annotations

from collections.abc import Iterator

from zurau.machines.controller.changes import (
    BrokerAdded,
    BrokerConfigChanged,
    Change,
    PartitionsAdded,
    PartitionStatesChanged,
    TopicAdded,
    TopicConfigChanged,
    TopicRemoved,
)
from zurau.machines.controller.image import ClusterImage, TopicImage


def differences(before: ClusterImage, after: ClusterImage) -> list[Change]:
    """Removals first: a topic may be there again under its name."""
    return list(_differences(before, after))


def _differences(before: ClusterImage, after: ClusterImage) -> Iterator[Change]:
    for topic_id, topic in before.topics_by_id.items():
        if topic_id not in after.topics_by_id:
            yield TopicRemoved(topic)
    for broker_id, broker in after.brokers.items():
        if before.brokers.get(broker_id) != broker:
            yield BrokerAdded(broker_id)
    for name in sorted({*before.broker_configs, *after.broker_configs}):
        if before.broker_configs.get(name, {}) != after.broker_configs.get(name, {}):
            yield BrokerConfigChanged(name)
    for topic_id, topic in after.topics_by_id.items():
        known = before.topics_by_id.get(topic_id)
        if known is None:
            yield TopicAdded(topic)
        elif known != topic:
            yield from _topic_differences(known, topic)


def _topic_differences(before: TopicImage, after: TopicImage) -> Iterator[Change]:
    if before.configs != after.configs:
        yield TopicConfigChanged(after)
    if len(after.partitions) > len(before.partitions):
        yield PartitionsAdded(after, after.partitions[len(before.partitions) :])
    changed = [new for old, new in zip(before.partitions, after.partitions, strict=False) if old != new]
    if changed:
        yield PartitionStatesChanged(after, changed)
