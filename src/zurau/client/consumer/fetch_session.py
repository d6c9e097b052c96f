"""The client's side of a fetch session (KIP-227): what the broker knows already is not said again.

A session belongs to a connection. It begins with a fetch that names everything; from then on only partitions are named
that are to be read from another offset than before, and those that are not to be read any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from zurau.client.cluster.connection import Connection
from zurau.ids import Offset, TopicId, TopicPartition
from zurau.settings import INT32_MAX
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

#: The broker does not know the session, or not as we do: everything is named once more.
BEGIN_ANEW = frozenset(
    (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    )
)


class Wanted(NamedTuple):
    topic_id: TopicId
    offset: Offset


class FetchSession:
    def __init__(self, connection: Connection, partition_max_bytes: int) -> None:
        self.connection = connection
        self.session_id = 0
        self.epoch = 0
        self.topic_names: dict[TopicId, str] = {}
        self._partition_max_bytes = partition_max_bytes
        self._known: dict[TopicPartition, Wanted] = {}

    def next_fetch(self, wanted: Mapping[TopicPartition, Wanted]) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """What has to be named so that these are read, and no others."""
        if not self.session_id:
            self._known = {}
        topics: dict[TopicId | str, FetchTopic] = {}
        for partition, want in wanted.items():
            if self._known.get(partition) != want:
                named = topics.get(partition.topic)
                if named is None:
                    named = FetchTopic(topic=partition.topic, topic_id=want.topic_id, partitions=[])
                    topics[partition.topic] = named
                    self.topic_names[want.topic_id] = partition.topic
                named.partitions.append(
                    FetchPartition(
                        partition=partition.partition,
                        fetch_offset=want.offset,
                        partition_max_bytes=self._partition_max_bytes,
                    )
                )
        forgotten: dict[TopicId, ForgottenTopic] = {}
        for partition, known in self._known.items():
            if partition not in wanted or wanted[partition].topic_id != known.topic_id:
                left = forgotten.setdefault(
                    known.topic_id, ForgottenTopic(topic=partition.topic, topic_id=known.topic_id, partitions=[])
                )
                left.partitions.append(partition.partition)
        self._known = dict(wanted)
        return list(topics.values()), list(forgotten.values())

    def answered(self, session_id: int) -> None:
        self.session_id = session_id
        if session_id:
            self.epoch = 1 if self.epoch == INT32_MAX else self.epoch + 1
        else:
            self.epoch = 0
