"""Topics: made, made larger, removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec.structs import replace

from zurau.errors import Refused
from zurau.machines.controller.commands import CreatePartitions, CreateTopic, DeleteTopic
from zurau.machines.controller.config_rules import ConfigRules
from zurau.machines.controller.decided import Decided
from zurau.machines.controller.image import ISR, QUORUM, REPLICATION_MODE, ClusterImage, PartitionImage, TopicImage
from zurau.machines.controller.in_sync import Drafts
from zurau.machines.controller.names import check_not_internal, check_topic_name
from zurau.machines.controller.placement import place, placed_by_hand
from zurau.machines.controller.records import PartitionsCreated, TopicDeleted
from zurau.machines.controller.snapshot import placed, topic_record
from zurau.wire.kafka.error_codes import ErrorCode

#: Each partition is files and memory; a typing error must not take the broker down.
PARTITIONS_MAX = 10_000
#: In a command: whatever the broker's default is.
DEFAULT = -1


class TopicDefaults(Protocol):
    """What the controller's broker was told about topics that do not say."""

    @property
    def num_partitions(self) -> int: ...

    @property
    def default_replication_factor(self) -> int: ...


def create_topic(
    image: ClusterImage, rules: ConfigRules[Any], defaults: TopicDefaults, drafts: Drafts, command: CreateTopic
) -> Decided:
    _check_new_name(image, command)
    partitions = _first_partitions(image, defaults, command)
    configs = _with_mode(image, rules, rules.topic.checked(command.configs), len(partitions[0].replicas))
    topic = _begun(drafts, TopicImage(command.name, command.topic_id, partitions, configs))
    if command.validate_only:
        return Decided(reply=topic)
    return Decided([topic_record(topic)], topic)


def _with_mode(
    image: ClusterImage, rules: ConfigRules[Any], configs: Mapping[str, str], replication_factor: int
) -> Mapping[str, str]:
    """With who elects its leaders, if that is not what every topic has. Of two replicas a majority is both."""
    settings = rules.cluster_settings(image, configs)
    is_pair = replication_factor == 2 and REPLICATION_MODE not in configs
    if settings.replication_mode == QUORUM and not is_pair:
        return configs
    # Replicas in sync have to store alike, however their brokers were started.
    return {**configs, REPLICATION_MODE: ISR, "flush": "fsync" if settings.waits_for_flush else "os"}


def _begun(drafts: Drafts, topic: TopicImage, first_index: int = 0) -> TopicImage:
    """With leaders for the partitions from `first_index` on, if the controller is to name them."""
    if not topic.is_in_sync_mode:
        return topic
    begun = [drafts.begin(key, new) if new.index >= first_index else new for key, new in topic.keyed_partitions()]
    return replace(topic, partitions=tuple(begun))


def delete_topic(image: ClusterImage, command: DeleteTopic) -> Decided:
    topic = image.topics_by_id.get(command.topic_id)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
    check_not_internal(topic.name)
    return Decided([TopicDeleted(topic_id=topic.topic_id)])


def create_partitions(image: ClusterImage, drafts: Drafts, command: CreatePartitions) -> Decided:
    topic = image.topics.get(command.name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    check_not_internal(topic.name)
    added = _more_partitions(image, topic, command)
    if command.validate_only:
        return Decided()
    first_index = len(topic.partitions)
    topic = _begun(drafts, replace(topic, partitions=topic.partitions + added), first_index)
    new = [placed(partition) for partition in topic.partitions[first_index:]]
    return Decided([PartitionsCreated(topic_id=topic.topic_id, partitions=new)])


def _check_new_name(image: ClusterImage, command: CreateTopic) -> None:
    check_topic_name(command.name)
    if not command.by_broker:
        check_not_internal(command.name)
    if command.name in image.topics:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {command.name!r} already exists")
    if other := image.colliding_topic(command.name):
        raise Refused(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"topic {command.name!r} would be confused with {other!r}: '.' and '_' count as the same character",
        )
    if command.topic_id in image.topics_by_id:
        raise Refused(ErrorCode.INVALID_REQUEST, "the topic id is taken; draw another")


def _first_partitions(image: ClusterImage, defaults: TopicDefaults, command: CreateTopic) -> tuple[PartitionImage, ...]:
    if not command.assignments:
        count, replication_factor = command.partition_count, command.replication_factor
        count = defaults.num_partitions if count == DEFAULT else count
        replication_factor = (
            defaults.default_replication_factor if replication_factor == DEFAULT else replication_factor
        )
        _check_partition_count(count)
        return place(image.brokers, command.topic_id, range(count), replication_factor, image.leaving)
    if (command.partition_count, command.replication_factor) != (DEFAULT, DEFAULT):
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "with an assignment of replicas, partition count and replication factor must be -1: it says both",
        )
    _check_partition_count(len(command.assignments))
    replication_factor = max(map(len, command.assignments.values()))
    return placed_by_hand(image.brokers, command.assignments, 0, replication_factor)


def _more_partitions(image: ClusterImage, topic: TopicImage, command: CreatePartitions) -> tuple[PartitionImage, ...]:
    _check_partition_count(command.partition_count)
    indexes = range(len(topic.partitions), command.partition_count)
    if not indexes:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name!r} has {len(topic.partitions)} partitions; the new count must be larger",
        )
    if command.assignments is None:
        return place(image.brokers, topic.topic_id, indexes, topic.replication_factor, image.leaving)
    if len(command.assignments) != len(indexes):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{len(indexes)} partitions are added and replicas are given for {len(command.assignments)}",
        )
    by_index = dict(zip(indexes, command.assignments, strict=True))
    return placed_by_hand(image.brokers, by_index, indexes.start, topic.replication_factor)


def _check_partition_count(count: int) -> None:
    if not 1 <= count <= PARTITIONS_MAX:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"a topic has 1 to {PARTITIONS_MAX} partitions, not {count}",
        )
