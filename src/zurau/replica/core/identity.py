"""Who a replica is: a broker and the directory that holds the copy; and of what it is one.

The directory's id is made once, when the directory is. A broker that comes back with an empty disk comes back as
somebody else, so it can neither vote twice in one epoch nor be counted for records that it has forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

from zurau.ids import BrokerId, TopicId, id_text


class ReplicaId(NamedTuple):
    broker: BrokerId
    directory: str

    def __str__(self) -> str:
        return f"{self.broker}{self.directory}"


class PartitionId(NamedTuple):
    """A partition among brokers. Not by its topic's name: a topic that is deleted and made again is another one, and
    what was said about the first must not be heard by the second."""

    topic_id: TopicId
    partition: int

    def __str__(self) -> str:
        return f"{id_text(self.topic_id)}-{self.partition}"
