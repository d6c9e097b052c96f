"""Producers and consumers that are told apart by an id of the broker's, for front ends without connections that last.

An id has a number that the controller gives out once (Kafka's producer ids), and a checksum over it, the topic and the
cluster. So every broker can tell an id that was given out for a topic from one that was not, also after a restart or
the death of the broker that gave it out, and nothing has to be looked up. It tells mistakes from ids, and is no secret.

The positions of a consumer are the committed offsets of a group that has its id.
"""

from __future__ import annotations

import re

from fastcrc import crc32

from zurau.broker.broker import Broker
from zurau.broker.last_seen import Kind
from zurau.errors import Refused
from zurau.ids import ProducerId
from zurau.wire.kafka.error_codes import ErrorCode

_ID = re.compile(r"\w+-(\d{1,19})-[0-9a-f]{8}")
_UNKNOWN = {Kind.PRODUCER: ErrorCode.UNKNOWN_PRODUCER_ID, Kind.CONSUMER: ErrorCode.UNKNOWN_MEMBER_ID}


async def register_client(kind: Kind, topic: str, broker: Broker) -> str:
    """An id that nobody has had. Raises `Refused` while the controller cannot be asked."""
    return _id(kind, await broker.producer_ids.next(), topic, broker)


def require_registered(kind: Kind, client_id: str, topic: str, broker: Broker) -> None:
    """Raises `Refused` for an id that was not given out for this topic. Notes that the client was seen."""
    found = _ID.fullmatch(client_id)
    if found is None or client_id != _id(kind, int(found[1]), topic, broker):
        raise Refused(_UNKNOWN[kind], f"no {kind} {client_id[:64]!r} is registered for {topic!r}")
    broker.last_seen.heard(kind, client_id)


def _id(kind: Kind, number: ProducerId, topic: str, broker: Broker) -> str:
    return f"{kind}-{number}-{crc32.iscsi(f'{broker.cluster_id}/{kind}/{topic}/{number}'.encode()):08x}"
