"""How each record changes the image. The only place where it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from zurau.ids import BrokerId, Offset, PartitionId, ReplicaId, TopicId
from zurau.machines.controller.changes import (
    BrokerAdded,
    BrokerConfigChanged,
    BrokerFencingChanged,
    BrokerRemoved,
    Change,
    PartitionsAdded,
    PartitionStatesChanged,
    TopicAdded,
    TopicConfigChanged,
    TopicRemoved,
)
from zurau.machines.controller.commands import ResourceType
from zurau.machines.controller.features import check_supported
from zurau.machines.controller.image import (
    RESERVED_IDS_MAX,
    BrokerImage,
    ClusterImage,
    FeatureRange,
    Listener,
    PartitionImage,
    TopicImage,
)
from zurau.machines.controller.names import collision_key
from zurau.machines.controller.records import (
    NO_EPOCH,
    BrokerIdReserved,
    BrokerRegistered,
    BrokerRegistrationChanged,
    BrokerUnregistered,
    ConfigsChanged,
    ConfigValue,
    FeatureLevelChanged,
    MetadataRecord,
    PartitionPlaced,
    PartitionsChanged,
    PartitionsCreated,
    ProducerIdsAllocated,
    ReplicaName,
    TopicCreated,
    TopicDeleted,
)


def apply_record(image: ClusterImage, record: MetadataRecord, offset: Offset) -> Change | None:
    """Make the record true, and say what changed for the brokers."""
    image.epoch += 1
    if isinstance(record, BrokerRegistered):
        return _register_broker(image, record, offset)
    return _APPLIERS[type(record)](image, record)


def _register_broker(image: ClusterImage, record: BrokerRegistered, offset: Offset) -> Change:
    broker_id = BrokerId(record.broker_id)
    image.reserved_ids.pop(broker_id, None)
    image.brokers[broker_id] = BrokerImage(
        broker_id,
        record.directory_id,
        record.incarnation_id,
        broker_epoch=offset if record.broker_epoch == NO_EPOCH else record.broker_epoch,
        listeners=tuple(Listener(each.name, each.host, each.port) for each in record.listeners),
        rack=record.rack,
        is_fenced=record.is_fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        metadata_directory=record.metadata_directory,
        features=tuple(FeatureRange(each.name, each.lowest, each.highest) for each in record.features),
    )
    return BrokerAdded(broker_id)


def _reserve_id(image: ClusterImage, record: BrokerIdReserved) -> None:
    """The newest is last. Anybody can ask for an id and never register: the oldest of too many is free again."""
    image.reserved_ids.pop(BrokerId(record.broker_id), None)
    while len(image.reserved_ids) >= RESERVED_IDS_MAX:
        del image.reserved_ids[next(iter(image.reserved_ids))]
    image.reserved_ids[BrokerId(record.broker_id)] = record.directory_id


def _change_registration(image: ClusterImage, record: BrokerRegistrationChanged) -> Change:
    broker = image.brokers[BrokerId(record.broker_id)]
    image.brokers[broker.broker_id] = replace(
        broker, is_fenced=record.is_fenced, in_controlled_shutdown=record.in_controlled_shutdown
    )
    return BrokerFencingChanged(broker.broker_id)


def _unregister_broker(image: ClusterImage, record: BrokerUnregistered) -> Change:
    broker_id = BrokerId(record.broker_id)
    del image.brokers[broker_id]
    image.broker_configs.pop(str(broker_id), None)
    return BrokerRemoved(broker_id)


def _create_topic(image: ClusterImage, record: TopicCreated) -> Change:
    topic = TopicImage(
        name=record.name,
        topic_id=TopicId(record.topic_id),
        partitions=_partition_images(image, record.partitions),
        configs=_changed({}, record.configs),
    )
    image.names_by_collision_key[collision_key(topic.name)] = topic.name
    _put_topic(image, topic, topic.partitions)
    return TopicAdded(topic)


def _add_partitions(image: ClusterImage, record: PartitionsCreated) -> Change:
    added = _partition_images(image, record.partitions)
    topic = image.topics_by_id[TopicId(record.topic_id)]
    topic = replace(topic, partitions=topic.partitions + added)
    _put_topic(image, topic, added)
    return PartitionsAdded(topic, added)


def _change_partitions(image: ClusterImage, record: PartitionsChanged) -> Change:
    changed = _partition_images(image, record.partitions)
    by_index = {partition.index: partition for partition in changed}
    topic = image.topics_by_id[TopicId(record.topic_id)]
    topic = replace(topic, partitions=tuple(by_index.get(each.index, each) for each in topic.partitions))
    _put_topic(image, topic, changed)
    return PartitionStatesChanged(topic, changed)


def _delete_topic(image: ClusterImage, record: TopicDeleted) -> Change:
    topic = image.topics_by_id.pop(TopicId(record.topic_id))
    image.leaderless.difference_update(PartitionId(topic.topic_id, each.index) for each in topic.partitions)
    del image.topics[topic.name]
    del image.names_by_collision_key[collision_key(topic.name)]
    return TopicRemoved(topic)


def _change_configs(image: ClusterImage, record: ConfigsChanged) -> Change:
    if record.resource_type == ResourceType.TOPIC:
        topic = image.topics[record.resource_name]
        topic = replace(topic, configs=_changed(topic.configs, record.changes))
        _put_topic(image, topic, [])
        return TopicConfigChanged(topic)
    before = image.broker_configs.get(record.resource_name, {})
    image.broker_configs[record.resource_name] = _changed(before, record.changes)
    return BrokerConfigChanged(record.resource_name)


def _allocate_producer_ids(image: ClusterImage, record: ProducerIdsAllocated) -> None:
    image.next_producer_id = record.next_producer_id


def _change_level(image: ClusterImage, record: FeatureLevelChanged) -> None:
    check_supported(record)
    image.feature_levels[record.feature] = record.level


def _put_topic(image: ClusterImage, topic: TopicImage, changed: Iterable[PartitionImage]) -> None:
    image.topics[topic.name] = topic
    image.topics_by_id[topic.topic_id] = topic
    for partition in changed:
        key = PartitionId(topic.topic_id, partition.index)
        if partition.in_sync and partition.leader is None:
            image.leaderless.add(key)
        else:
            image.leaderless.discard(key)


def _partition_images(image: ClusterImage, placed: Iterable[PartitionPlaced]) -> tuple[PartitionImage, ...]:
    return tuple(_partition_image(image, partition) for partition in placed)


def _partition_image(image: ClusterImage, placed: PartitionPlaced) -> PartitionImage:
    in_sync = _replica_ids(placed.in_sync)
    leader = next((each for each in in_sync if each.broker == placed.leader), None)
    return PartitionImage(
        placed.index,
        tuple(map(BrokerId, placed.replicas)),
        directories=tuple(placed.directories or _usual_directories(image, placed.replicas)),
        leader=leader,
        leader_epoch=placed.leader_epoch,
        in_sync=in_sync,
        eligible=_replica_ids(placed.eligible),
        partition_epoch=placed.partition_epoch,
        target=tuple(map(BrokerId, placed.target)),
        origin=tuple(map(BrokerId, placed.origin)),
        first_voters=_replica_ids(placed.first_voters),
    )


def _usual_directories(image: ClusterImage, replicas: Iterable[int]) -> Iterator[str]:
    """What replicas were called when nobody gave them names."""
    brokers = map(image.brokers.get, map(BrokerId, replicas))
    return ("" if broker is None else broker.directory_name for broker in brokers)


def _replica_ids(names: Iterable[ReplicaName]) -> tuple[ReplicaId, ...]:
    return tuple(ReplicaId(BrokerId(each.broker_id), each.directory) for each in names)


def _changed(configs: Mapping[str, str], changes: Iterable[ConfigValue]) -> dict[str, str]:
    result = dict(configs)
    for change in changes:
        if change.value is None:
            result.pop(change.name, None)
        else:
            result[change.name] = change.value
    return result


_APPLIERS: dict[type[MetadataRecord], Callable[[ClusterImage, Any], Change | None]] = {
    BrokerIdReserved: _reserve_id,
    BrokerRegistrationChanged: _change_registration,
    BrokerUnregistered: _unregister_broker,
    PartitionsChanged: _change_partitions,
    TopicCreated: _create_topic,
    PartitionsCreated: _add_partitions,
    TopicDeleted: _delete_topic,
    ConfigsChanged: _change_configs,
    FeatureLevelChanged: _change_level,
    ProducerIdsAllocated: _allocate_producer_ids,
}
