"""The fetch sessions of a broker's clients (KIP-227): how many there may be, and which has to go for another one.

A session takes a slot. When none is free, one that was not used for two minutes gives way to a new one; if there is
none, the smallest that is older than two minutes and smaller than the new one does: the more partitions a session has,
the more it saves. A client that gets no session sends what it would send without, as does one whose session is gone.

Kafka's sessions outlive their connections; ours do not. A client that connects anew begins a session anyway, for it
cannot know which of its fetches arrived. And so nobody can read on in a session of somebody else.
"""

from __future__ import annotations

from typing import Protocol

from zurau.broker.settings import BrokerSettings
from zurau.ports import World
from zurau.settings import INT32_MAX, MINUTE_MS

#: From when on a session may have to go for another one.
EVICTABLE_AFTER_MS = 2 * MINUTE_MS

NO_SESSION_ID = 0


class FetchSession(Protocol):
    session_id: int
    created_ms: float
    used_ms: float

    @property
    def size(self) -> int:
        """How many partitions it has."""

    @property
    def held_bytes(self) -> int: ...

    def close(self) -> None:
        """It is not in the cache any more."""


class FetchSessions:
    def __init__(self, settings: BrokerSettings, world: World) -> None:
        self._slots = settings.max_incremental_fetch_session_cache_slots
        #: A part of what all requests may hold: their connections are counted with it too.
        self._memory_bytes = settings.queued_max_request_bytes // 4
        self._clock = world.clock
        self._randomness = world.randomness
        #: The one that was used longest ago is the first.
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def find(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def try_add(self, session: FetchSession) -> bool:
        """Give it an id and a slot, if it can have one."""
        now_ms = self._clock.monotonic_ms()
        held_bytes = sum(each.held_bytes for each in self._sessions.values())
        if held_bytes + session.held_bytes > self._memory_bytes:
            return False
        if len(self._sessions) >= self._slots:
            evicted = self._evictable(session.size, now_ms)
            if evicted is None:
                return False
            self.remove(evicted)
        session.session_id = self._new_id()
        session.created_ms = session.used_ms = now_ms
        self._sessions[session.session_id] = session
        return True

    def touch(self, session: FetchSession) -> None:
        session.used_ms = self._clock.monotonic_ms()
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)

    def remove(self, session: FetchSession) -> None:
        if self._sessions.pop(session.session_id, None) is not None:
            session.close()

    def _evictable(self, size: int, now_ms: float) -> FetchSession | None:
        latest_ms = now_ms - EVICTABLE_AFTER_MS
        oldest = next(iter(self._sessions.values()), None)
        if oldest is not None and oldest.used_ms < latest_ms:
            return oldest
        smaller = [each for each in self._sessions.values() if each.created_ms < latest_ms and each.size < size]
        return min(smaller, key=lambda each: (each.size, each.session_id), default=None)

    def _new_id(self) -> int:
        while True:
            session_id = 1 + self._randomness.below(INT32_MAX)
            if session_id not in self._sessions:
                return session_id
