"""What a client knows about a cluster: its brokers, and each topic's partitions and leaders."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zurau.ids import Address, BrokerId, TopicId

if TYPE_CHECKING:
    from zurau.wire.kafka.messages.metadata import MetadataResponse, MetadataResponseTopic

NO_LEADER = BrokerId(-1)


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    broker_id: BrokerId
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    index: int
    leader: BrokerId
    leader_epoch: int
    replicas: tuple[BrokerId, ...]
    in_sync: tuple[BrokerId, ...]
    offline: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """Partitions are in the order of their numbers."""

    name: str
    topic_id: TopicId
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]

    @property
    def replica_count(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)


@dataclass(slots=True)
class Metadata:
    """The last that was heard; `Cluster` asks again when it turns out to be wrong."""

    cluster_id: str | None = None
    controller_id: BrokerId = NO_LEADER
    brokers: dict[BrokerId, BrokerInfo] = field(default_factory=dict)
    topics: dict[str, TopicInfo] = field(default_factory=dict)

    def update(self, answer: MetadataResponse) -> None:
        """Take over a broker's answer. Topics that it does not mention stay as they were."""
        self.cluster_id = answer.cluster_id
        self.controller_id = BrokerId(answer.controller_id)
        self.brokers = {
            BrokerId(broker.node_id): BrokerInfo(
                BrokerId(broker.node_id), Address(broker.host, broker.port), broker.rack
            )
            for broker in answer.brokers
        }
        for topic in answer.topics:
            if topic.name is not None:
                self.topics.pop(topic.name, None)
                if topic.error_code == 0:
                    self.topics[topic.name] = _topic_info(topic.name, topic)


def _topic_info(name: str, topic: MetadataResponseTopic) -> TopicInfo:
    partitions = (
        PartitionInfo(
            index=partition.partition_index,
            leader=BrokerId(partition.leader_id),
            leader_epoch=partition.leader_epoch,
            replicas=tuple(map(BrokerId, partition.replica_nodes)),
            in_sync=tuple(map(BrokerId, partition.isr_nodes)),
            offline=tuple(map(BrokerId, partition.offline_replicas)),
        )
        for partition in topic.partitions
    )
    ordered = tuple(sorted(partitions, key=lambda partition: partition.index))
    return TopicInfo(name, TopicId(topic.topic_id), topic.is_internal, ordered)
