"""What the metadata log holds, one record for each thing that became true.

Records have no key: the log is not compacted, because the order of these facts is the fact. A value is the record's
type and version as two int16, then the body. Types are numbered for ever; fields are added with `since` or `tagged`.

A release that finds a type which it does not know stops: guessing would lose topics. Unless the type's number has the
bit `MAY_BE_IGNORED`, which says that whoever does not know it misses nothing that it would have to obey.
"""

from __future__ import annotations

import struct
from typing import Annotated, ClassVar

from zurau.errors import ProtocolViolation, ReleaseTooOld
from zurau.machines.machine import StateRecord
from zurau.wire.kafka.codec import decode_versioned, encode_versioned, peek_version
from zurau.wire.kafka.schema import Message, Struct, boolean, i8, i16, i32, i64, string, tagged, uuid

NO_EPOCH = -1
NO_LEADER = -1
MAY_BE_IGNORED = 0x4000

_TYPE = struct.Struct(">h")


class MetadataRecord(Message):
    """A record of the metadata log, flexible from the start to leave room for tagged fields."""

    flexible_since: ClassVar[int | None] = 0
    versions: ClassVar[range] = range(1)


class ReplicaName(Struct):
    broker_id: i32
    directory: string


class PartitionPlaced(Struct):
    """A partition as it is from here on."""

    index: i32
    #: Broker ids; the first is the preferred leader.
    replicas: list[i32]
    #: One for each. Empty in what older releases wrote: then each is called by its broker's directory.
    directories: Annotated[list[string], tagged(0, since=0)] = []
    #: The rest is said in in-sync mode only. The leader is one of those in sync.
    leader: Annotated[i32, tagged(1, since=0)] = NO_LEADER
    leader_epoch: Annotated[i32, tagged(2, since=0)] = 0
    in_sync: Annotated[list[ReplicaName], tagged(3, since=0)] = []
    eligible: Annotated[list[ReplicaName], tagged(4, since=0)] = []
    partition_epoch: Annotated[i32, tagged(5, since=0)] = 0
    #: While it is reassigned, in either mode.
    target: Annotated[list[i32], tagged(6, since=0)] = []
    origin: Annotated[list[i32], tagged(7, since=0)] = []
    #: Said when its replicas have changed, where they elect their leader.
    first_voters: Annotated[list[ReplicaName], tagged(8, since=0)] = []


class ListenerRegistered(Struct):
    name: string
    host: string
    port: i32


class FeatureSupported(Struct):
    name: string
    lowest: i16
    highest: i16


class ConfigValue(Struct):
    name: string
    #: None takes the setting back to its default.
    value: string | None


class BrokerRegistered(MetadataRecord):
    broker_id: i32
    #: Names the disk: a broker that comes back with another one has lost what it held.
    directory_id: uuid
    #: Names the process: new at each start.
    incarnation_id: uuid
    #: In a snapshot. In the log it is the record's own offset.
    broker_epoch: Annotated[i64, tagged(0, since=0)] = NO_EPOCH
    listeners: Annotated[list[ListenerRegistered], tagged(1, since=0)] = []
    rack: Annotated[string | None, tagged(2, since=0)] = None
    #: Older releases fenced nobody.
    is_fenced: Annotated[boolean, tagged(3, since=0)] = False
    in_controlled_shutdown: Annotated[boolean, tagged(4, since=0)] = False
    #: The name of its replica of the metadata log, if that is not the directory's own.
    metadata_directory: Annotated[string, tagged(5, since=0)] = ""
    features: Annotated[list[FeatureSupported], tagged(6, since=0)] = []


class BrokerRegistrationChanged(MetadataRecord):
    broker_id: i32
    broker_epoch: i64
    is_fenced: boolean
    in_controlled_shutdown: boolean


class BrokerIdReserved(MetadataRecord):
    """The id is taken, for a directory that is about to register for the first time."""

    broker_id: i32
    directory_id: uuid


class TopicCreated(MetadataRecord):
    topic_id: uuid
    name: string
    partitions: list[PartitionPlaced]
    configs: list[ConfigValue]


class PartitionsCreated(MetadataRecord):
    topic_id: uuid
    partitions: list[PartitionPlaced]


class PartitionsChanged(MetadataRecord):
    """Those of one topic that a decision has changed."""

    topic_id: uuid
    partitions: list[PartitionPlaced]


class TopicDeleted(MetadataRecord):
    topic_id: uuid


class ConfigsChanged(MetadataRecord):
    resource_type: i8
    resource_name: string
    changes: list[ConfigValue]


class ProducerIdsAllocated(MetadataRecord):
    #: Every smaller id is taken.
    next_producer_id: i64


class BrokerUnregistered(MetadataRecord):
    broker_id: i32
    broker_epoch: i64


class FeatureLevelChanged(MetadataRecord):
    """From here on, brokers may write and offer what belongs to this level."""

    feature: string
    level: i16


RECORD_TYPES: dict[int, type[MetadataRecord]] = {
    11: FeatureLevelChanged,
    10: BrokerUnregistered,
    9: BrokerIdReserved,
    1: BrokerRegistered,
    2: TopicCreated,
    3: PartitionsCreated,
    4: TopicDeleted,
    5: ConfigsChanged,
    6: ProducerIdsAllocated,
    7: BrokerRegistrationChanged,
    8: PartitionsChanged,
}
_TYPE_NUMBERS = {cls: number for number, cls in RECORD_TYPES.items()}
_VERSION = 0


def encode_record(record: MetadataRecord) -> StateRecord:
    return StateRecord(key=None, value=_TYPE.pack(_TYPE_NUMBERS[type(record)]) + encode_versioned(record, _VERSION))


def decode_record(record: StateRecord) -> MetadataRecord | None:
    """None for an unknown one that may be ignored. Raises `ReleaseTooOld` for what this release cannot read."""
    try:
        value = memoryview(record.value or b"")
        number = peek_version(value)
        if number not in RECORD_TYPES:
            if number > 0 and number & MAY_BE_IGNORED:
                return None
            raise ProtocolViolation(f"there is no record of type {number}")
        return decode_versioned(RECORD_TYPES[number], value[_TYPE.size :])
    except ProtocolViolation as error:
        raise ReleaseTooOld(
            f"the metadata log holds a record that this release cannot read ({error}); "
            "start a release at least as new as the one that wrote it"
        ) from error
