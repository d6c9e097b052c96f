"""Topics, their settings and their records: list, make, change, remove."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from zurau.client.cluster.cluster import Cluster
from zurau.client.cluster.metadata import NO_LEADER, Metadata, TopicInfo
from zurau.client.errors import NoLeader, UnknownTopic, check
from zurau.client.retry import Backoff, Deadline
from zurau.ids import BrokerId, Offset, TopicPartition
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from zurau.wire.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from zurau.wire.kafka.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from zurau.wire.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

BROKER_DEFAULT = -1
#: How long to wait for brokers to agree on a change that went through.
SETTLE_S = 5.0
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, RESET = 0, 1
#: Where a setting's value comes from, by Kafka's numbers.
SOURCES = {1: "topic", 2: "broker", 3: "cluster", 4: "file", 5: "default", 6: "logger"}


@dataclass(frozen=True, slots=True)
class NewTopic:
    """Counts of -1 leave the choice to the broker."""

    name: str
    partition_count: int = BROKER_DEFAULT
    replica_count: int = BROKER_DEFAULT
    settings: Mapping[str, str] | None = None


class ConfigEntry(NamedTuple):
    """One setting; its value is None where the broker keeps it secret."""

    name: str
    value: str | None
    source: str
    is_read_only: bool
    is_sensitive: bool


class Admin:
    """Each call is tried again while the reason it failed may pass, and then raises."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._timeout_ms = int(cluster.timeout_s * 1000)

    def describe_cluster(self) -> Metadata:
        """Who is in the cluster, and all its topics."""
        self._cluster.retry(self._cluster.refresh)
        return self._cluster.metadata

    def list_topics(self, *, with_internal: bool = False) -> list[TopicInfo]:
        topics = self.describe_cluster().topics
        return [topic for _, topic in sorted(topics.items()) if with_internal or not topic.is_internal]

    def describe_topic(self, name: str) -> TopicInfo:
        self._cluster.forget([name])
        return self._cluster.retry(lambda: self._cluster.topic(name))

    def create_topic(self, new: NewTopic) -> TopicInfo:
        """Make a topic, and return when each of its partitions has a leader."""
        settings = [CreatableTopicConfig(name=name, value=value) for name, value in (new.settings or {}).items()]
        creatable = CreatableTopic(
            name=new.name,
            num_partitions=new.partition_count,
            replication_factor=new.replica_count,
            configs=settings,
        )
        request = CreateTopicsRequest(topics=[creatable], timeout_ms=self._timeout_ms)

        tries = count(1)

        def create() -> None:
            is_first = next(tries) == 1
            for result in self._cluster.ask_controller(request).topics:
                # A try whose answer was lost may have made it.
                if is_first or result.error_code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    check(result.error_code, f"creating topic {new.name!r}", result.error_message)

        self._cluster.retry(create)
        return self._cluster.retry(lambda: self._with_leaders(new.name), topics=[new.name])

    def delete_topic(self, name: str) -> None:
        """Remove a topic, and return when the brokers have stopped telling of it."""
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=self._timeout_ms)

        tries = count(1)

        def delete() -> None:
            is_first = next(tries) == 1
            for result in self._cluster.ask_controller(request).responses:
                if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    if is_first:
                        raise UnknownTopic(name)
                    continue  # a try whose answer was lost has deleted it
                check(result.error_code, f"deleting topic {name!r}", result.error_message)

        self._cluster.retry(delete)
        self._settle(lambda: self._is_gone(name))

    def add_partitions(self, name: str, total_count: int) -> TopicInfo:
        """Let a topic have `total_count` partitions."""
        wanted = CreatePartitionsTopic(name=name, count=total_count)
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=self._timeout_ms)

        def add() -> None:
            for result in self._cluster.ask_controller(request).results:
                check(result.error_code, f"adding partitions to topic {name!r}", result.error_message)

        self._cluster.retry(add)
        self._cluster.forget([name])
        return self._cluster.retry(lambda: self._with_leaders(name, total_count), topics=[name])

    def topic_settings(self, name: str) -> list[ConfigEntry]:
        resource = DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name)

        def describe() -> list[ConfigEntry]:
            result = self._cluster.ask_any(DescribeConfigsRequest(resources=[resource])).results[0]
            if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(name)
            check(result.error_code, f"settings of topic {name!r}", result.error_message)
            return _config_entries(result)

        return self._cluster.retry(describe)

    def broker_settings(self, broker: BrokerId, names: list[str] | None = None) -> list[ConfigEntry]:
        """All settings of a broker, or some; those that it does not know are left out."""
        resource = DescribeConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name=str(broker), configuration_keys=names
        )

        def describe() -> list[ConfigEntry]:
            result = self._cluster.ask_broker(broker, DescribeConfigsRequest(resources=[resource])).results[0]
            check(result.error_code, f"settings of broker {broker}", result.error_message)
            return _config_entries(result)

        return self._cluster.retry(describe)

    def change_topic_settings(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set some settings, or take one back to its default with None. Those not named stay as they are."""
        configs = [
            AlterableConfig(name=setting, config_operation=RESET if value is None else SET, value=value)
            for setting, value in changes.items()
        ]
        resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configs=configs)

        def alter() -> None:
            for result in self._cluster.ask_controller(IncrementalAlterConfigsRequest(resources=[resource])).responses:
                if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise UnknownTopic(name)
                check(result.error_code, f"changing settings of topic {name!r}", result.error_message)

        self._cluster.retry(alter)
        self._settle(lambda: self._has_settings(name, changes))

    def delete_records(self, before: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        """Drop the records before an offset (-1: all of them); the first offset of each partition afterwards."""
        topics = {partition.topic for partition in before}
        return self._cluster.retry(lambda: self._delete_records(before), topics=topics)

    def _delete_records(self, before: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        starts = {}
        for broker, partitions in self._cluster.by_leader(before).items():
            topics: dict[str, list[DeleteRecordsPartition]] = {}
            for partition in partitions:
                asked = DeleteRecordsPartition(partition_index=partition.partition, offset=before[partition])
                topics.setdefault(partition.topic, []).append(asked)
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=name, partitions=asked) for name, asked in topics.items()],
                timeout_ms=self._timeout_ms,
            )
            for topic in self._cluster.ask_broker(broker, request).topics:
                for result in topic.partitions:
                    partition = TopicPartition(topic.name, result.partition_index)
                    check(result.error_code, f"deleting records of {partition}")
                    starts[partition] = result.low_watermark
        return starts

    def _settle(self, is_done: Callable[[], bool]) -> None:
        """Brokers learn of a change one after the other; give them a moment, so that the next question sees it."""
        deadline, backoff = Deadline(SETTLE_S), Backoff()
        while not is_done() and not deadline.passed:
            time.sleep(backoff.next_delay_s())

    def _is_gone(self, name: str) -> bool:
        self._cluster.forget([name])
        self._cluster.refresh([name])
        return name not in self._cluster.metadata.topics

    def _has_settings(self, name: str, wanted: Mapping[str, str | None]) -> bool:
        found = {entry.name: entry for entry in self.topic_settings(name)}
        return all(
            found[setting].source != "topic" if value is None else found[setting].value == value
            for setting, value in wanted.items()
            if setting in found
        )

    def _with_leaders(self, name: str, partition_count: int = 1) -> TopicInfo:
        """The topic once every broker that we may ask knows it; a cluster takes a moment to tell."""
        self._cluster.refresh([name])
        topic = self._cluster.metadata.topics.get(name)
        leaders = [partition.leader for partition in topic.partitions] if topic is not None else []
        if topic is None or len(leaders) < partition_count or NO_LEADER in leaders:
            raise NoLeader(f"topic {name!r} was made but has no leaders yet; see `zurau topic describe {name}`")
        return topic


def _config_entries(result: DescribeConfigsResult) -> list[ConfigEntry]:
    return [
        ConfigEntry(
            entry.name, entry.value, SOURCES.get(entry.config_source, "unknown"), entry.read_only, entry.is_sensitive
        )
        for entry in sorted(result.configs, key=lambda entry: entry.name)
    ]
