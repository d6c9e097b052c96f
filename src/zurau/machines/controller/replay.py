"""How each record changes the image. The only place where it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from zurau.ids import BrokerId, TopicId
from zurau.machines.controller.changes import (
    BrokerAdded,
    BrokerConfigChanged,
    Change,
    PartitionsAdded,
    TopicAdded,
    TopicConfigChanged,
    TopicRemoved,
)
from zurau.machines.controller.commands import ResourceType
from zurau.machines.controller.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from zurau.machines.controller.names import collision_key
from zurau.machines.controller.records import (
    BrokerRegistered,
    ConfigsChanged,
    ConfigValue,
    MetadataRecord,
    PartitionPlaced,
    PartitionsCreated,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
)


def apply_record(image: ClusterImage, record: MetadataRecord) -> Change | None:
    """Make the record true, and say what changed for the brokers."""
    image.epoch += 1
    return _APPLIERS[type(record)](image, record)


def _register_broker(image: ClusterImage, record: BrokerRegistered) -> Change:
    broker_id = BrokerId(record.broker_id)
    image.brokers[broker_id] = BrokerImage(broker_id, record.directory_id, record.incarnation_id)
    return BrokerAdded(broker_id)


def _create_topic(image: ClusterImage, record: TopicCreated) -> Change:
    topic = TopicImage(
        name=record.name,
        topic_id=TopicId(record.topic_id),
        partitions=_partition_images(record.partitions),
        configs=_changed({}, record.configs),
    )
    image.names_by_collision_key[collision_key(topic.name)] = topic.name
    _put_topic(image, topic)
    return TopicAdded(topic)


def _add_partitions(image: ClusterImage, record: PartitionsCreated) -> Change:
    added = _partition_images(record.partitions)
    topic = image.topics_by_id[TopicId(record.topic_id)]
    topic = replace(topic, partitions=topic.partitions + added)
    _put_topic(image, topic)
    return PartitionsAdded(topic, added)


def _delete_topic(image: ClusterImage, record: TopicDeleted) -> Change:
    topic = image.topics_by_id.pop(TopicId(record.topic_id))
    del image.topics[topic.name]
    del image.names_by_collision_key[collision_key(topic.name)]
    return TopicRemoved(topic)


def _change_configs(image: ClusterImage, record: ConfigsChanged) -> Change:
    if record.resource_type == ResourceType.TOPIC:
        topic = image.topics[record.resource_name]
        topic = replace(topic, configs=_changed(topic.configs, record.changes))
        _put_topic(image, topic)
        return TopicConfigChanged(topic)
    before = image.broker_configs.get(record.resource_name, {})
    image.broker_configs[record.resource_name] = _changed(before, record.changes)
    return BrokerConfigChanged(record.resource_name)


def _allocate_producer_ids(image: ClusterImage, record: ProducerIdsAllocated) -> None:
    image.next_producer_id = record.next_producer_id


def _put_topic(image: ClusterImage, topic: TopicImage) -> None:
    image.topics[topic.name] = topic
    image.topics_by_id[topic.topic_id] = topic


def _partition_images(placed: Iterable[PartitionPlaced]) -> tuple[PartitionImage, ...]:
    return tuple(
        PartitionImage(partition.index, tuple(BrokerId(broker) for broker in partition.replicas))
        for partition in placed
    )


def _changed(configs: Mapping[str, str], changes: Iterable[ConfigValue]) -> dict[str, str]:
    result = dict(configs)
    for change in changes:
        if change.value is None:
            result.pop(change.name, None)
        else:
            result[change.name] = change.value
    return result


_APPLIERS: dict[type[MetadataRecord], Callable[[ClusterImage, Any], Change | None]] = {
    BrokerRegistered: _register_broker,
    TopicCreated: _create_topic,
    PartitionsCreated: _add_partitions,
    TopicDeleted: _delete_topic,
    ConfigsChanged: _change_configs,
    ProducerIdsAllocated: _allocate_producer_ids,
}
