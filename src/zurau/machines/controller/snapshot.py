"""The shortest log that gives an image: one record for each thing that is true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from zurau.machines.controller.commands import ResourceType
from zurau.machines.controller.image import ClusterImage, PartitionImage, TopicImage
from zurau.machines.controller.records import (
    BrokerRegistered,
    ConfigsChanged,
    ConfigValue,
    MetadataRecord,
    PartitionPlaced,
    ProducerIdsAllocated,
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

    def records() -> Iterator[MetadataRecord]:
        for broker in brokers:
            yield BrokerRegistered(
                broker_id=broker.broker_id, directory_id=broker.directory_id, incarnation_id=broker.incarnation_id
            )
        for name, configs in broker_configs:
            yield ConfigsChanged(resource_type=ResourceType.BROKER, resource_name=name, changes=_values(configs))
        yield from map(topic_record, topics)
        yield ProducerIdsAllocated(next_producer_id=next_producer_id)

    return records


def topic_record(topic: TopicImage) -> TopicCreated:
    return TopicCreated(
        topic_id=topic.topic_id,
        name=topic.name,
        partitions=placed(topic.partitions),
        configs=_values(topic.configs),
    )


def placed(partitions: Iterable[PartitionImage]) -> list[PartitionPlaced]:
    return [PartitionPlaced(index=partition.index, replicas=list(partition.replicas)) for partition in partitions]


def _values(configs: Mapping[str, str]) -> list[ConfigValue]:
    return [ConfigValue(name=name, value=value) for name, value in configs.items()]
