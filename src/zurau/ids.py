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


class TopicPartition(NamedTuple):
    """One partition of a topic, by name; prints as its directory is called."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAndEpoch(NamedTuple):
    """A position in a replicated log. Positions compare by epoch first: see replica/."""

    offset: Offset
    epoch: Epoch


def id_text(raw: bytes) -> str:
    """The sixteen bytes of an id as Kafka's tools print them: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def id_bytes(text: str) -> bytes:
    """The inverse of `id_text`."""
    return base64.urlsafe_b64decode(text + "==")
