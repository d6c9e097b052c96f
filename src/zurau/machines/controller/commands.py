"""What may be asked of the controller, and in brackets what it answers, unless it refuses (`Refused`).

With `validate_only` everything is checked and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from zurau.ids import BrokerId, Epoch, Offset, PartitionId, ReplicaId, TopicId
from zurau.machines.controller.image import FeatureRange, Listener, PartitionImage, TopicImage
from zurau.machines.machine import Command, Value


class ResourceType(IntEnum):
    """What has settings, by Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigOperation(IntEnum):
    """Kafka's numbers. Append and subtract are for settings that are lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ReserveBrokerId(Command[int]):
    """A directory that is in no cluster yet wants to be in this one."""

    directory_id: bytes
    #: The id that it wants; -1: any.
    broker_id: BrokerId = BrokerId(-1)
    #: Where it listens for other brokers. Who comes with an empty disk to the place of a broker that is gone is that
    #: broker again, and fills its replicas anew.
    host: str = ""
    port: int = 0


class RegisterBroker(Command[int]):
    """A broker has started. It is fenced until a heartbeat says that it has seen its own registration."""

    broker_id: BrokerId
    directory_id: bytes
    #: Drawn at random at each start.
    incarnation_id: bytes
    listeners: tuple[Listener, ...] = ()
    rack: str | None = None
    #: The broker epoch of the start that ended in good order and lost nothing since; -1: it may have lost what was not
    #: flushed. A start that was never registered keeps what the one before it left here.
    previous_broker_epoch: Epoch = -1
    #: The incarnations that the directory remembers: the last one that it knows to be registered, and all since. One
    #: that does not remember the registered one is an old copy of a disk. None: it does not write them down.
    remembered_incarnations: tuple[bytes, ...] | None = None
    #: The name of its replica of the metadata log, if that is not the directory's own.
    metadata_directory: str = ""
    #: Nothing is said by releases that do not know levels.
    features: tuple[FeatureRange, ...] = ()


class BrokerHeartbeatReply(Value):
    is_fenced: bool
    #: Nobody needs it any more. Asked for with `wants_shutdown`.
    should_shut_down: bool = False


class BrokerHeartbeat(Command[BrokerHeartbeatReply]):
    broker_id: BrokerId
    broker_epoch: Epoch
    #: Up to and with this offset, the broker has applied the committed metadata.
    metadata_offset: Offset
    #: Its replicas that do not work: their disk failed, or they led before a restart and have forgotten it.
    failed: frozenset[PartitionId] = frozenset()
    wants_shutdown: bool = False


class BrokerDisconnected(Command[None]):
    """The controller's own broker has no connection with it: it is fenced soon, unless it is heard."""

    broker_id: BrokerId
    #: For so long already: whoever takes over from a controller that died with it need not wait once more.
    since_ms: int = 0


class AlterPartition(Command[PartitionImage]):
    """The leader of a partition in in-sync mode wants another in-sync set."""

    partition: PartitionId
    leader: ReplicaId
    leader_epoch: Epoch
    #: Of the state that it wants to change.
    partition_epoch: Epoch
    in_sync: tuple[ReplicaId, ...]
    #: One for each of the above: a broker that has been restarted since is not the one that was caught up.
    broker_epochs: tuple[Epoch, ...]


class ElectLeader(Command[PartitionImage]):
    """Of a partition in in-sync mode: let the preferred replica lead; or (unclean) anybody, though records be lost."""

    partition: PartitionId
    is_unclean: bool = False


class ReassignPartition(Command[None]):
    """Let other brokers have a partition; None: those that had it before, so that a reassignment is cancelled."""

    partition: PartitionId
    replicas: tuple[int, ...] | None
    #: The name of the replicas that are added. Drawn at random, and never used before: a broker that had the partition
    #: once, and has it again, must not be counted for what it had then.
    directory: str
    may_change_factor: bool = True


class FinishReassignment(Command[None]):
    """Of a partition whose replicas elect their leader: those vote that shall have it, and their leader says so."""

    partition: PartitionId
    #: Of the state that it finishes.
    partition_epoch: Epoch
    voters: tuple[ReplicaId, ...]


class UnregisterBroker(Command[None]):
    """It is gone for good. If it comes after all, it has to register anew."""

    broker_id: BrokerId


class RenameReplica(Command[None]):
    """A replica has lost something that it had promised, so it goes on as another one."""

    broker_id: BrokerId
    broker_epoch: Epoch
    partition: PartitionId
    #: Drawn at random, and never used before.
    directory: str


class CreateTopic(Command[TopicImage]):
    """Ask for counts, or for an assignment of broker ids to each partition index; then both counts are -1."""

    name: str
    #: Drawn at random by whoever asks: a machine draws nothing.
    topic_id: TopicId
    partition_count: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str | None] = {}
    validate_only: bool = False
    #: The broker itself asks, for one of its internal topics.
    by_broker: bool = False


class DeleteTopic(Command[None]):
    topic_id: TopicId


class CreatePartitions(Command[None]):
    name: str
    #: How many there will be in all.
    partition_count: int
    #: Broker ids for each new partition, in order; None lets the controller place them.
    assignments: Sequence[Sequence[int]] | None = None
    validate_only: bool = False


class ConfigEdit(Value):
    name: str
    operation: int
    value: str | None = None


class AlterConfigs(Command[None]):
    """Change some settings of a resource; all of the edits or none."""

    resource_type: int
    resource_name: str
    edits: Sequence[ConfigEdit]
    validate_only: bool = False


class ReplaceConfigs(Command[None]):
    """Set these and take every other setting of the resource back to its default."""

    resource_type: int
    resource_name: str
    configs: Mapping[str, str | None]
    validate_only: bool = False


class UpgradeType(IntEnum):
    """Kafka's numbers. An unsafe downgrade may lose what the lower level does not know."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(Value):
    feature: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


class UpdateFeatures(Command[None]):
    """Raise or lower the levels of features; all of them or none."""

    updates: Sequence[FeatureUpdate]
    validate_only: bool = False


class AllocateProducerIds(Command[tuple[int, int]]):
    """Ids that nobody else has or will get: the first, and the one after the last."""

    count: int


class CatchUp(Command[None]):
    """Changes nothing. Its answer comes when the broker that asked has seen everything that was decided before."""


ControllerCommand = (
    ReserveBrokerId
    | RegisterBroker
    | BrokerHeartbeat
    | BrokerDisconnected
    | AlterPartition
    | ElectLeader
    | ReassignPartition
    | FinishReassignment
    | RenameReplica
    | UnregisterBroker
    | CreateTopic
    | DeleteTopic
    | CreatePartitions
    | AlterConfigs
    | ReplaceConfigs
    | AllocateProducerIds
    | CatchUp
    | UpdateFeatures
)
