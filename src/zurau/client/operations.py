"""What operators do to a cluster: move partitions and leaders, drain brokers, let them go. All over the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from zurau.client.cluster.cluster import Cluster
from zurau.client.errors import check
from zurau.ids import BrokerId, TopicPartition
from zurau.wire.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from zurau.wire.kafka.messages.describe_cluster import DescribeClusterRequest
from zurau.wire.kafka.messages.describe_quorum import DescribeQuorumRequest, QuorumPartition, QuorumTopic
from zurau.wire.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from zurau.wire.kafka.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from zurau.wire.kafka.messages.unregister_broker import UnregisterBrokerRequest

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
#: Settings that hold for each broker that has none of its own.
ALL_BROKERS = ""
SET, RESET = 0, 1
#: What bounds replicas that catch up, at the broker and of the topic; and the word for all replicas of a topic.
THROTTLED_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
THROTTLED_REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
ALL_REPLICAS = "*"
METADATA = QuorumTopic(topic_name="__cluster_metadata", partitions=[QuorumPartition(partition_index=0)])


class DescribedBroker(NamedTuple):
    broker_id: BrokerId
    host: str
    port: int
    rack: str | None
    is_fenced: bool


class Move(NamedTuple):
    """A partition on its way to other brokers."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]


class Operations:
    """Each call is tried again while the reason it failed may pass, and then raises."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._timeout_ms = int(cluster.timeout_s * 1000)

    def describe(self) -> list[DescribedBroker]:
        """All brokers that are registered, there or not."""

        def describe() -> list[DescribedBroker]:
            answer = self._cluster.ask_any(DescribeClusterRequest(include_fenced_brokers=True))
            check(answer.error_code, "describing the cluster", answer.error_message)
            return [
                DescribedBroker(BrokerId(each.broker_id), each.host, each.port, each.rack, each.is_fenced)
                for each in answer.brokers
            ]

        return self._cluster.retry(describe)

    def voters(self) -> frozenset[BrokerId]:
        """Who votes on the metadata."""

        def describe() -> frozenset[BrokerId]:
            answer = self._cluster.ask_any(DescribeQuorumRequest(topics=[METADATA]))
            check(answer.error_code, "describing the metadata quorum", answer.error_message)
            described = answer.topics[0].partitions[0]
            check(described.error_code, "describing the metadata quorum", described.error_message)
            return frozenset(BrokerId(each.replica_id) for each in described.current_voters)

        return self._cluster.retry(describe)

    def set_broker(self, broker: BrokerId, name: str, value: str | None) -> None:
        """Change a setting of a broker, or take it back to its default with None."""
        self._alter([_change(BROKER_RESOURCE, str(broker), {name: value})])

    def throttle(self, topics: Iterable[str], bytes_per_s: int | None) -> None:
        """Let replicas of these topics that catch up send and take so much at each broker; None: what they can."""
        rate, which = (None, None) if bytes_per_s is None else (str(bytes_per_s), ALL_REPLICAS)
        self._alter(
            [
                *(_change(TOPIC_RESOURCE, topic, dict.fromkeys(THROTTLED_REPLICAS, which)) for topic in topics),
                _change(BROKER_RESOURCE, ALL_BROKERS, dict.fromkeys(THROTTLED_RATES, rate)),
            ]
        )

    def _alter(self, changes: list[AlterConfigsResource]) -> None:
        def alter() -> None:
            for result in self._cluster.ask_controller(IncrementalAlterConfigsRequest(resources=changes)).responses:
                what = "topic" if result.resource_type == TOPIC_RESOURCE else "broker"
                check(result.error_code, f"changing settings of {what} {result.resource_name}", result.error_message)

        self._cluster.retry(alter)

    def reassign(self, wanted: Mapping[TopicPartition, Iterable[BrokerId] | None]) -> None:
        """Let partitions have these brokers; None: those that they had before."""
        topics: dict[str, list[ReassignablePartition]] = {}
        for name, brokers in wanted.items():
            replicas = None if brokers is None else [int(each) for each in brokers]
            asked = ReassignablePartition(partition_index=name.partition, replicas=replicas)
            topics.setdefault(name.topic, []).append(asked)
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._timeout_ms,
            topics=[ReassignableTopic(name=name, partitions=asked) for name, asked in topics.items()],
        )

        def alter() -> None:
            answer = self._cluster.ask_controller(request)
            check(answer.error_code, "moving partitions", answer.error_message)
            for topic in answer.responses:
                for result in topic.partitions:
                    moved = TopicPartition(topic.name, result.partition_index)
                    check(result.error_code, f"moving {moved}", result.error_message)

        self._cluster.retry(alter)

    def moves(self) -> dict[TopicPartition, Move]:
        """What is still under way."""

        def look() -> dict[TopicPartition, Move]:
            answer = self._cluster.ask_controller(ListPartitionReassignmentsRequest(timeout_ms=self._timeout_ms))
            check(answer.error_code, "listing what is moved", answer.error_message)
            return {
                TopicPartition(topic.name, each.partition_index): Move(
                    tuple(each.adding_replicas), tuple(each.removing_replicas)
                )
                for topic in answer.topics
                for each in topic.partitions
            }

        return self._cluster.retry(look)

    def unregister(self, broker: BrokerId) -> None:
        def forget() -> None:
            answer = self._cluster.ask_controller(UnregisterBrokerRequest(broker_id=broker))
            check(answer.error_code, f"unregistering broker {broker}", answer.error_message)

        self._cluster.retry(forget)


def _change(resource_type: int, name: str, values: Mapping[str, str | None]) -> AlterConfigsResource:
    """Of settings: to these values, and with None to the default."""
    configs = [
        AlterableConfig(name=each, config_operation=RESET if value is None else SET, value=value)
        for each, value in values.items()
    ]
    return AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=configs)
