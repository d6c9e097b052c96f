"""The shortest log that gives an image: one record for each thing that is true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from zurau.ids import ReplicaId
from zurau.machines.controller.commands import ResourceType
from zurau.machines.controller.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from zurau.machines.controller.records import (
    NO_LEADER,
    BrokerIdReserved,
    BrokerRegistered,
    ConfigsChanged,
    ConfigValue,
    FeatureLevelChanged,
    FeatureSupported,
    ListenerRegistered,
    MetadataRecord,
    PartitionPlaced,
    ProducerIdsAllocated,
    ReplicaName,
    TopicCreated,
)


def freeze(image: ClusterImage) -> Callable[[], Iterator[MetadataRecord]]:
    """The records that give this image, as it is now: what is slow is left to whoever calls the result.

    Values in an image are never changed, so holding on to them is enough.
    """
    brokers = list(image.brokers.values())
    topics = list(image.topics.values())
    broker_configs = list(image.broker_configs.items())
    next_producer_id = image.next_producer_id
    reserved_ids = list(image.reserved_ids.items())
    feature_levels = list(image.feature_levels.items())

    def records() -> Iterator[MetadataRecord]:
        for feature, level in feature_levels:
            yield FeatureLevelChanged(feature=feature, level=level)
        yield from map(broker_record, brokers)
        for broker_id, directory_id in reserved_ids:
            yield BrokerIdReserved(broker_id=broker_id, directory_id=directory_id)
        for name, configs in broker_configs:
            yield ConfigsChanged(resource_type=ResourceType.BROKER, resource_name=name, changes=_values(configs))
        yield from map(topic_record, topics)
        yield ProducerIdsAllocated(next_producer_id=next_producer_id)

    return records


def broker_record(broker: BrokerImage) -> BrokerRegistered:
    return BrokerRegistered(
        broker_id=broker.broker_id,
        directory_id=broker.directory_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.broker_epoch,
        listeners=[ListenerRegistered(name=each.name, host=each.host, port=each.port) for each in broker.listeners],
        rack=broker.rack,
        is_fenced=broker.is_fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        metadata_directory=broker.metadata_directory,
        features=[
            FeatureSupported(name=each.name, lowest=each.lowest, highest=each.highest) for each in broker.features
        ],
    )


def topic_record(topic: TopicImage) -> TopicCreated:
    return TopicCreated(
        topic_id=topic.topic_id,
        name=topic.name,
        partitions=list(map(placed, topic.partitions)),
        configs=_values(topic.configs),
    )


def placed(partition: PartitionImage) -> PartitionPlaced:
    return PartitionPlaced(
        index=partition.index,
        replicas=list(partition.replicas),
        directories=list(partition.directories),
        leader=NO_LEADER if partition.leader is None else partition.leader.broker,
        leader_epoch=partition.leader_epoch,
        in_sync=_names(partition.in_sync),
        eligible=_names(partition.eligible),
        partition_epoch=partition.partition_epoch,
        target=list(partition.target),
        origin=list(partition.origin),
        first_voters=_names(partition.first_voters),
    )


def _names(replicas: Iterable[ReplicaId]) -> list[ReplicaName]:
    return [ReplicaName(broker_id=replica.broker, directory=replica.directory) for replica in replicas]


def _values(configs: Mapping[str, str]) -> list[ConfigValue]:
    return [ConfigValue(name=name, value=value) for name, value in configs.items()]
