"""The cluster as the metadata log describes it: what brokers and handlers read.

Readers look things up and never change anything. Topics and brokers are frozen values that are replaced whole, so a
reader may keep one across an `await` and compare it later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from zurau.ids import BrokerId, Epoch, PartitionId, ProducerId, ReplicaId, TopicId, TopicPartition, directory_name
from zurau.machines.controller.dynamic import DRAIN, EVERYTHING, METADATA_VOTE, NOT_DRAINED
from zurau.machines.controller.names import collision_key, is_internal
from zurau.machines.machine import Value

#: Whose broker configs hold for every broker: Kafka's tools call this resource by the empty name.
ALL_BROKERS = ""
#: Who elects the leader of a topic's partitions: their replicas, or the controller from the in-sync set.
REPLICATION_MODE = "replication.mode"
QUORUM, ISR = "quorum", "isr"
#: The name of the listener for other brokers.
PEER_LISTENER = "PEER"


#: Ids that are kept for directories that have not registered yet.
RESERVED_IDS_MAX = 100


class Listener(Value):
    """Where a broker can be reached, by the name of the network."""

    name: str
    host: str
    port: int


class FeatureRange(Value):
    """The levels of a feature that a broker supports."""

    name: str
    lowest: int
    highest: int


class BrokerImage(Value):
    """A broker's registration."""

    broker_id: BrokerId
    directory_id: bytes
    incarnation_id: bytes
    #: The offset of the registration: a later start has a larger one.
    broker_epoch: Epoch
    listeners: tuple[Listener, ...] = ()
    rack: str | None = None
    #: Not heard of, or not caught up yet: it leads nothing in in-sync mode, and gets no new replicas.
    is_fenced: bool = False
    #: It wants to stop, and its leaders are being moved away.
    in_controlled_shutdown: bool = False
    #: The name of its replica of the metadata log, if that is not the directory's own: it has lost the first one.
    metadata_directory: str = ""
    #: Empty where an older release registered.
    features: tuple[FeatureRange, ...] = ()

    @property
    def is_active(self) -> bool:
        return not self.is_fenced and not self.in_controlled_shutdown

    def listener(self, name: str) -> Listener | None:
        return next((each for each in self.listeners if each.name == name), None)

    @property
    def directory_name(self) -> str:
        """What its new replicas are called by."""
        return directory_name(self.directory_id)

    @property
    def metadata_replica(self) -> ReplicaId:
        """Its replica of the metadata log."""
        return ReplicaId(self.broker_id, self.metadata_directory or self.directory_name)


class PartitionImage(Value):
    """Where a partition's replicas are; and in in-sync mode who leads and is in sync."""

    index: int
    #: The first is the preferred leader. Invariant: not empty, no broker twice.
    replicas: tuple[BrokerId, ...]
    #: For each of them, the name of the directory that holds it now.
    directories: tuple[str, ...]
    leader: ReplicaId | None = None
    #: Counts leaders.
    leader_epoch: Epoch = 0
    #: In order. Never empty in in-sync mode: the last one stays, dead or alive, because it may be the last to know.
    in_sync: tuple[ReplicaId, ...] = ()
    #: Those that left the in-sync set without having lost anything, the latest last (KIP-966 has the like).
    eligible: tuple[ReplicaId, ...] = ()
    #: Counts changes; a proposal for an older state is refused.
    partition_epoch: Epoch = 0
    #: While it is reassigned: the brokers that shall have it in the end, and those that had it before. `replicas` are
    #: all of these and whoever still has to leave.
    target: tuple[BrokerId, ...] = ()
    origin: tuple[BrokerId, ...] = ()
    #: Who voted when it was new, if its replicas are others now. Whoever begins without being one of these has to hear
    #: from a leader who votes: else replicas that know nothing could elect each other.
    first_voters: tuple[ReplicaId, ...] = ()

    @property
    def adding(self) -> tuple[BrokerId, ...]:
        return tuple(each for each in self.target if each not in self.origin)

    @property
    def removing(self) -> tuple[BrokerId, ...]:
        return tuple(each for each in self.replicas if each not in self.target) if self.target else ()

    @property
    def wanted_ids(self) -> tuple[ReplicaId, ...]:
        """The replicas that it shall have in the end."""
        return tuple(each for each in self.replica_ids if not self.target or each.broker in self.target)

    @property
    def founders(self) -> tuple[ReplicaId, ...]:
        return self.first_voters or self.replica_ids

    @property
    def replica_ids(self) -> tuple[ReplicaId, ...]:
        return tuple(map(ReplicaId, self.replicas, self.directories))

    @property
    def preferred(self) -> ReplicaId:
        return ReplicaId(self.replicas[0], self.directories[0])

    def has(self, replica: ReplicaId) -> bool:
        """Whether it is one of the replicas, under the name that it has now."""
        return replica in zip(self.replicas, self.directories, strict=True)

    def replica_on(self, broker: BrokerId) -> ReplicaId | None:
        """The replica that a broker has now."""
        return next((replica for replica in self.replica_ids if replica.broker == broker), None)


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
        return len(self.partitions[0].target or self.partitions[0].replicas)

    @property
    def is_in_sync_mode(self) -> bool:
        return self.configs.get(REPLICATION_MODE) == ISR

    def keyed_partitions(self) -> Iterator[tuple[PartitionId, PartitionImage]]:
        return ((PartitionId(self.topic_id, partition.index), partition) for partition in self.partitions)


class ClusterImage(msgspec.Struct):
    #: Grows with each applied record, so that what was computed from the image can be kept until it changes.
    epoch: int = 0
    brokers: dict[BrokerId, BrokerImage] = msgspec.field(default_factory=dict)
    topics: dict[str, TopicImage] = msgspec.field(default_factory=dict)
    topics_by_id: dict[TopicId, TopicImage] = msgspec.field(default_factory=dict)
    #: Topic names by what would collide with them; see names.py.
    names_by_collision_key: dict[str, str] = msgspec.field(default_factory=dict)
    #: Settings changed while running, by broker id as text (or `ALL_BROKERS`), then by the setting's name.
    broker_configs: dict[str, Mapping[str, str]] = msgspec.field(default_factory=dict)
    next_producer_id: ProducerId = 0
    #: As far as levels are recorded; `features.level_of` knows the others.
    feature_levels: dict[str, int] = msgspec.field(default_factory=dict)
    #: Ids of directories that are about to register for the first time, the oldest first; `RESERVED_IDS_MAX` at most.
    reserved_ids: dict[BrokerId, bytes] = msgspec.field(default_factory=dict)
    #: Partitions in in-sync mode that nobody leads, so that a heartbeat does not have to look at all.
    leaderless: set[PartitionId] = msgspec.field(default_factory=set)

    def is_drained(self, broker: BrokerId) -> bool:
        """It shall lead nothing that another could lead."""
        return self.broker_configs.get(str(broker), {}).get(DRAIN, NOT_DRAINED) != NOT_DRAINED

    def is_leaving(self, broker: BrokerId) -> bool:
        """It is to go: it gets nothing new."""
        return self.broker_configs.get(str(broker), {}).get(DRAIN) == EVERYTHING

    @property
    def leaving(self) -> frozenset[BrokerId]:
        return frozenset(filter(self.is_leaving, self.brokers))

    def may_vote(self, broker: BrokerId) -> bool:
        """On the metadata."""
        configs = self.broker_configs.get(str(broker), {})
        return configs.get(DRAIN) != EVERYTHING and configs.get(METADATA_VOTE) != "false"

    def has_partition(self, name: TopicPartition) -> bool:
        topic = self.topics.get(name.topic)
        return topic is not None and 0 <= name.partition < len(topic.partitions)

    def partition(self, key: PartitionId) -> PartitionImage | None:
        topic = self.topics_by_id.get(key.topic_id)
        return (
            topic.partitions[key.partition]
            if topic is not None and 0 <= key.partition < len(topic.partitions)
            else None
        )

    def partitions(self) -> Iterator[tuple[PartitionId, PartitionImage]]:
        """All of all topics."""
        for topic in self.topics.values():
            yield from topic.keyed_partitions()

    def colliding_topic(self, name: str) -> str | None:
        """Another topic whose name differs only in '.' and '_'."""
        other = self.names_by_collision_key.get(collision_key(name))
        return None if other == name else other
