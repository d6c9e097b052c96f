"""The cluster as the metadata log describes it: what brokers and handlers read.

Readers look things up and never change anything. Topics and brokers are frozen values that are replaced whole, so a
reader may keep one across an `await` and compare it later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from zurau.ids import BrokerId, ProducerId, TopicId, TopicPartition
from zurau.machines.controller.names import collision_key, is_internal
from zurau.machines.machine import Value

#: Whose broker configs hold for every broker: Kafka's tools call this resource by the empty name.
ALL_BROKERS = ""


class BrokerImage(Value):
    broker_id: BrokerId
    directory_id: bytes
    incarnation_id: bytes


class PartitionImage(Value):
    index: int
    #: The first is the preferred leader. Invariant: not empty, no broker twice.
    replicas: tuple[BrokerId, ...]


class TopicImage(Value):
    """A topic. Invariant: `partitions[i].index == i`."""

    name: str
    topic_id: TopicId
    partitions: tuple[PartitionImage, ...]
    #: What was set on the topic itself, as text by Kafka's names; everything else has the broker's default.
    configs: Mapping[str, str]

    @property
    def is_internal(self) -> bool:
        return is_internal(self.name)

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


@dataclass(slots=True)
class ClusterImage:
    #: Grows with each applied record, so that what was computed from the image can be kept until it changes.
    epoch: int = 0
    brokers: dict[BrokerId, BrokerImage] = field(default_factory=dict)
    topics: dict[str, TopicImage] = field(default_factory=dict)
    topics_by_id: dict[TopicId, TopicImage] = field(default_factory=dict)
    #: Topic names by what would collide with them; see names.py.
    names_by_collision_key: dict[str, str] = field(default_factory=dict)
    #: Settings changed while running, by broker id as text (or `ALL_BROKERS`), then by the setting's name.
    broker_configs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    next_producer_id: ProducerId = 0

    def has_partition(self, name: TopicPartition) -> bool:
        topic = self.topics.get(name.topic)
        return topic is not None and 0 <= name.partition < len(topic.partitions)

    def colliding_topic(self, name: str) -> str | None:
        """Another topic whose name differs only in '.' and '_'."""
        other = self.names_by_collision_key.get(collision_key(name))
        return None if other == name else other
