"""What the records of the broker's own logs say: `__consumer_offsets`, and `__cluster_metadata`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from zurau.errors import CorruptData, ProtocolViolation
from zurau.machines.controller import records as metadata
from zurau.machines.controller.names import METADATA_TOPIC, OFFSETS_TOPIC
from zurau.machines.groups import records as groups
from zurau.machines.machine import StateRecord

if TYPE_CHECKING:
    from zurau.records.record import Record


def state_in(directory: str, record: Record) -> dict[str, Any] | None:
    """The fields of a record, by name. None for records of users, and for kinds that this release does not know."""
    topic = directory.rpartition("-")[0]
    state = StateRecord(record.key, record.value)
    try:
        if topic == METADATA_TOPIC:
            known = metadata.decode_record(state)
            return None if known is None else _fields(known)
        fact = groups.decode_record(state) if topic == OFFSETS_TOPIC else None
    except (CorruptData, ProtocolViolation):
        return None
    if fact is None:
        return None
    key, value = fact
    return _fields(key) | ({"removed": True} if value is None else _fields(value) | {"type": type(value).__name__})


def _fields(message: msgspec.Struct) -> dict[str, Any]:
    return {"type": type(message).__name__} | dict(msgspec.to_builtins(message))
