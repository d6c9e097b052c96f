"""A fetch session (KIP-227): a client names its partitions once, then only what has changed, and is told only that.

The partitions that it reads live on between its fetches (`reading.py`). Session epochs number the fetches, so that
neither side goes on when the other one has missed something.
"""

from __future__ import annotations

from typing import cast

from zurau.api.client import ConnectionState
from zurau.api.kafka.call import Call
from zurau.api.kafka.reading import READING_BYTES, Readings
from zurau.broker.fetch_sessions import NO_SESSION_ID, FetchSessions
from zurau.errors import Refused
from zurau.ids import TopicId
from zurau.settings import INT32_MAX
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.fetch import FetchRequest

TOPIC_IDS_SINCE = 13
#: Epochs of fetches that name everything: without a session from now on, or with a new one.
NO_SESSION_EPOCH, FIRST_EPOCH = -1, 0


class ClientSession:
    """The session of one client, and of its connection."""

    __slots__ = (
        "_connection", "_counted_bytes", "_sessions", "created_ms", "epoch", "readings", "session_id", "used_ms",
        "uses_topic_ids",
    )  # fmt: skip

    def __init__(self, readings: Readings, call: Call) -> None:
        self.readings = readings
        self.uses_topic_ids = call.version >= TOPIC_IDS_SINCE
        self.session_id = NO_SESSION_ID
        self.created_ms = self.used_ms = 0.0
        #: Of the next fetch.
        self.epoch = FIRST_EPOCH + 1
        self._connection = call.connection
        self._sessions: FetchSessions = call.broker.fetch_sessions
        self._counted_bytes = 0

    @property
    def size(self) -> int:
        return len(self.readings)

    @property
    def held_bytes(self) -> int:
        return READING_BYTES * self.size

    def belongs_to(self, connection: ConnectionState) -> bool:
        return self._connection is connection

    def begin(self) -> bool:
        """Whether there is a slot for it."""
        if not self._sessions.try_add(self):
            return False
        self._connection.at_end[self.end] = None
        self.count()
        return True

    def count(self) -> None:
        """Its partitions are memory that the connection holds."""
        self._connection.waiting_bytes += self.held_bytes - self._counted_bytes
        self._counted_bytes = self.held_bytes

    def advance(self) -> None:
        """A fetch has come in it."""
        self.epoch = 1 if self.epoch == INT32_MAX else self.epoch + 1
        self._sessions.touch(self)

    def end(self) -> None:
        self._sessions.remove(self)

    def close(self) -> None:
        """The cache has let it go."""
        self.readings.close()
        self._connection.waiting_bytes -= self._counted_bytes
        self._connection.at_end.pop(self.end, None)


def find_session(session_id: int, call: Call) -> ClientSession | None:
    found = cast("ClientSession | None", call.broker.fetch_sessions.find(session_id))
    return found if found is not None and found.belongs_to(call.connection) else None


def continued_session(request: FetchRequest, call: Call) -> ClientSession:
    """The session of a fetch that names only what has changed. Raises `Refused` when it has to name everything."""
    session = find_session(request.session_id, call)
    if session is None:
        raise Refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if session.epoch != request.session_epoch:
        raise Refused(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
    if session.uses_topic_ids != (call.version >= TOPIC_IDS_SINCE):
        raise Refused(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
    return session


async def change(readings: Readings, request: FetchRequest, call: Call) -> None:
    """Read what the request names, each partition as its last mention says; and no more what it forgets."""
    turns, is_first = call.turns, True
    for topic in request.topics:
        topic_id = TopicId(topic.topic_id)
        for wanted in topic.partitions:
            if not is_first and turns.is_over():
                await turns.next()
            is_first = False
            readings.name(topic.topic, topic_id, wanted)
    for forgotten in request.forgotten_topics_data:
        for index in forgotten.partitions:
            if not is_first and turns.is_over():
                await turns.next()
            is_first = False
            readings.remove(forgotten.topic, TopicId(forgotten.topic_id), index)
    request.topics.clear()  # what was named twice need not stay in memory for as long as the client waits
    request.forgotten_topics_data.clear()
