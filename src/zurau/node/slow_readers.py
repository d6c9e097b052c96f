"""Clients that do not take their answers, while others need the memory that those hold.

As long as there is enough memory a client may take its time. When answers have to be made smaller than others ask for,
one that has taken next to nothing for ten seconds has to go, the largest holder first; when there is no memory left at
all, one second is long enough. Whoever reads, however slowly, stays. Past the limit by a quarter (which only many
large answers to other questions than fetches can bring about) the largest holder goes at once.
"""

from __future__ import annotations

import logging
from typing import Protocol

import msgspec

from zurau.api.response_memory import ResponseMemory, ResponseShare
from zurau.counters import Counters
from zurau.node.rate_limited_log import RateLimitedLog
from zurau.ports import Clock, Timer
from zurau.settings import KIB, SECOND_MS

log = logging.getLogger("zurau.connection")

LOOK_MS = 50
#: A client that takes less than this within its time is not reading.
PROGRESS_BYTES = 64 * KIB
PATIENCE_MS = 10 * SECOND_MS
PATIENCE_WITHOUT_MEMORY_MS = 1 * SECOND_MS


class Reader(Protocol):
    """A connection, as far as this is concerned."""

    responses: ResponseShare

    @property
    def unsent_bytes(self) -> int: ...

    def abort(self) -> None: ...

    def describe(self) -> str: ...


class _Progress(msgspec.Struct):
    unsent_bytes: int
    since_ms: float


class SlowReaders:
    """Everyone whose answer the system has not taken whole."""

    def __init__(self, memory: ResponseMemory, clock: Clock, counters: Counters) -> None:
        self._memory = memory
        self._clock = clock
        self._counters = counters
        self._readers: dict[Reader, _Progress] = {}
        self._timer: Timer | None = None
        self._rate_limited = RateLimitedLog(log)
        memory.when_short = self._look_later

    def add(self, reader: Reader) -> None:
        """Its answer is on the way."""
        unsent = reader.unsent_bytes
        self._readers[reader] = _Progress(unsent, self._clock.monotonic_ms())
        reader.responses.settle(unsent)
        while self._memory.held_bytes > self._memory.limit_bytes * 5 // 4 and self._readers:
            self._close(max(self._readers, key=_held_bytes))

    def remove(self, reader: Reader) -> None:
        """It has taken all, or gone."""
        self._readers.pop(reader, None)
        reader.responses.settle(0)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = self._clock.call_later(LOOK_MS, self._look)

    def _look(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        for reader, progress in list(self._readers.items()):
            unsent = reader.unsent_bytes
            reader.responses.settle(unsent)
            if progress.unsent_bytes - unsent >= PROGRESS_BYTES:
                progress.unsent_bytes, progress.since_ms = unsent, now_ms
        memory = self._memory
        if not memory.is_short:
            return
        if memory.free_bytes <= 0:
            self._close_stalled(now_ms - PATIENCE_WITHOUT_MEMORY_MS, memory.reserve_bytes // 2)
        self._close_stalled(now_ms - PATIENCE_MS, memory.reserve_bytes)
        memory.call_next()
        self._look_later()

    def _close_stalled(self, since_ms: float, enough_bytes: int) -> None:
        """Close those without progress since then, the largest first, until enough is free."""
        stalled = [reader for reader, progress in self._readers.items() if progress.since_ms <= since_ms]
        for reader in sorted(stalled, key=_held_bytes, reverse=True):
            if self._memory.free_bytes >= enough_bytes:
                return
            self._close(reader)

    def _close(self, reader: Reader) -> None:
        self._counters.closed_for_response_memory += 1
        self._rate_limited.warning(
            "closing the connection of %s, which does not take the %d bytes of its answer: others need the memory "
            "(queued.max.response.bytes)",
            reader.describe(),
            reader.responses.held_bytes,
        )
        reader.abort()
        self.remove(reader)


def _held_bytes(reader: Reader) -> int:
    return reader.responses.held_bytes
