"""A change of voters as it is stored: a control batch, which clients pass over, as Kafka's KRaft voters record is."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from zurau.errors import CorruptData
from zurau.ids import BrokerId
from zurau.records.builder import NewRecord, build_batch
from zurau.records.record import iter_records
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.membership import Voters

_KEY = struct.Struct(">hh")
_VERSION = 0
#: Kafka's number for it among the types of control records.
_VOTERS_TYPE = 6
_decoder = msgspec.msgpack.Decoder(list[tuple[int, str]])


def encode_voters(voters: Voters, now_ms: int) -> bytearray:
    """The batch, not stamped yet."""
    key = _KEY.pack(_VERSION, _VOTERS_TYPE)
    return build_batch([NewRecord(key, msgspec.msgpack.encode(voters), timestamp=now_ms)], is_control=True)


def voters_in(batch: memoryview) -> Voters | None:
    """Who votes from this control batch on; None if it does not say. Raises `CorruptData`."""
    return next(_found(batch), None)


def _found(batch: memoryview) -> Iterator[Voters]:
    for record in iter_records(batch):
        if record.key is not None and _KEY.unpack(record.key)[1] == _VOTERS_TYPE:
            try:
                voters = _decoder.decode(record.value or b"")
            except msgspec.DecodeError as error:
                raise CorruptData(f"a record of voters cannot be read: {error}") from error
            yield tuple(ReplicaId(BrokerId(broker), directory) for broker, directory in voters)
