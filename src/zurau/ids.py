"""Small values that name things. Everything else in Zurau is named by these.

One word for one thing: an *epoch* is what Raft calls a term, an *offset* what it calls an index, and the
*high watermark* what it calls the commit index.
"""

from __future__ import annotations

import base64
from typing import NamedTuple, NewType

BrokerId = NewType("BrokerId", int)
Offset = int
Epoch = int

#: Sixteen bytes, as on the wire. A topic that is deleted and created again gets a new one.
TopicId = NewType("TopicId", bytes)
NO_TOPIC_ID = TopicId(bytes(16))

ProducerId = int
NO_PRODUCER_ID: ProducerId = -1


#: Enough that two directories of one broker never have the same name.
_NAME_BYTES = 6


class TopicPartition(NamedTuple):
    """One partition of a topic, by name; prints as its directory is called."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class PartitionId(NamedTuple):
    """A partition among brokers. Not by its topic's name: a topic that is deleted and made again is another one, and
    what was said about the first must not be heard by the second."""

    topic_id: TopicId
    partition: int

    def __str__(self) -> str:
        return f"{id_text(self.topic_id)}-{self.partition}"


class ReplicaId(NamedTuple):
    """A broker, and the name of the directory that holds its copy. The name is given when the directory is made, and
    one that has lost something gets another: so a replica is never counted for what it has forgotten."""

    broker: BrokerId
    directory: str

    def __str__(self) -> str:
        return f"{self.broker}{self.directory}"


class Address(NamedTuple):
    """Where somebody can be dialled."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def id_text(raw: bytes) -> str:
    """The sixteen bytes of an id as Kafka's tools print them: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def directory_name(directory_id: bytes) -> str:
    """What the replicas in a directory are called by, until they lose something: the beginning of its id, as text."""
    return id_text(directory_id[:_NAME_BYTES])


def id_bytes(text: str) -> bytes:
    """The inverse of `id_text`."""
    return base64.urlsafe_b64decode(text + "==")
