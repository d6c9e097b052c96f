"""What the metadata log holds, one record for each thing that became true.

Records have no key: the log is not compacted, because the order of these facts is the fact. A value is the record's
type and version as two int16, then the body. Types are numbered for ever; fields are added with `since` or `tagged`.
"""

from __future__ import annotations

import struct
from typing import ClassVar

from zurau.errors import CorruptData, ProtocolViolation
from zurau.machines.machine import StateRecord
from zurau.wire.kafka.codec import decode_versioned, encode_versioned, peek_version
from zurau.wire.kafka.schema import Message, Struct, i8, i32, i64, string, uuid

_TYPE = struct.Struct(">h")


class MetadataRecord(Message):
    """A record of the metadata log, flexible from the start to leave room for tagged fields."""

    flexible_since: ClassVar[int | None] = 0
    versions: ClassVar[range] = range(1)


class PartitionPlaced(Struct):
    index: i32
    #: Broker ids; the first is the preferred leader.
    replicas: list[i32]


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


class TopicCreated(MetadataRecord):
    topic_id: uuid
    name: string
    partitions: list[PartitionPlaced]
    configs: list[ConfigValue]


class PartitionsCreated(MetadataRecord):
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


RECORD_TYPES: dict[int, type[MetadataRecord]] = {
    1: BrokerRegistered,
    2: TopicCreated,
    3: PartitionsCreated,
    4: TopicDeleted,
    5: ConfigsChanged,
    6: ProducerIdsAllocated,
}
_TYPE_NUMBERS = {cls: number for number, cls in RECORD_TYPES.items()}
_VERSION = 0


def encode_record(record: MetadataRecord) -> StateRecord:
    return StateRecord(key=None, value=_TYPE.pack(_TYPE_NUMBERS[type(record)]) + encode_versioned(record, _VERSION))


def decode_record(record: StateRecord) -> MetadataRecord:
    """Raises `CorruptData` for what this release cannot read: guessing would lose topics."""
    try:
        value = memoryview(record.value or b"")
        number = peek_version(value)
        if number not in RECORD_TYPES:
            raise ProtocolViolation(f"there is no record of type {number}")
        return decode_versioned(RECORD_TYPES[number], value[_TYPE.size :])
    except ProtocolViolation as error:
        raise CorruptData(
            f"the metadata log holds a record that this release cannot read ({error}); "
            "start a release at least as new as the one that wrote it"
        ) from error
