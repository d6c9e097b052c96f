"""Everybody who is connected, through whichever listener: how many they are, what they hold, and who has to go."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from zurau.api.response_memory import ResponseMemory
from zurau.broker.broker import Broker
from zurau.errors import ProtocolViolation
from zurau.node import descriptors
from zurau.node.closed_peers import ClosedPeers
from zurau.node.connection import Connection
from zurau.node.rate_limited_log import RateLimitedLog
from zurau.node.slow_readers import SlowReaders
from zurau.node.turns import LoopTurns
from zurau.ports import Clock, Timer
from zurau.settings import KIB, MINUTE_MS

log = logging.getLogger("zurau.listener")

SCRATCH_BYTES = 256 * KIB
SWEEP_MS_MIN = 10
#: How long a stop waits for clients to take what they are being sent.
GOODBYE_MS = 500


async def _give_turns() -> None:
    """Let the loop do what follows from what was done: closing takes a few rounds."""
    for _ in range(4):
        await asyncio.sleep(0)


class Connections:
    """All connections of a node."""

    def __init__(self, broker: Broker, clock: Clock, turns: LoopTurns) -> None:
        self.broker = broker
        self.clock = clock
        self.turns = turns
        #: Every connection reads into this one buffer; what it reads is parsed before another one reads.
        self.scratch = bytearray(SCRATCH_BYTES)
        self._counters = broker.world.counters
        self.response_memory = ResponseMemory(broker.settings.queued_max_response_bytes, self._counters)
        self.slow_readers = SlowReaders(self.response_memory, clock, self._counters)
        self.closed_peers = ClosedPeers(clock)
        #: Told of a broken invariant in a handler.
        self.broken = broker.world.fail
        self.call_soon = asyncio.get_running_loop().call_soon
        self._descriptors = descriptors.for_connections()
        self._connections: dict[Connection, None] = {}
        self._is_full = False
        self._sweep_timer: Timer | None = None
        self._all_gone: asyncio.Event | None = None
        self._violations, self._refusals, self._greedy = RateLimitedLog(log), RateLimitedLog(log), RateLimitedLog(log)

    def start(self) -> None:
        self._sweep_later()

    async def stop(self) -> None:
        """Close every connection, once what it is being sent has left or after a while. Nobody may come in any more."""
        self._all_gone = asyncio.Event()
        for connection in list(self._connections):
            connection.close()
        if self._connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_gone.wait(), GOODBYE_MS / 1000)
        for connection in list(self._connections):
            connection.abort()
        await _give_turns()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        self.slow_readers.stop()
        self.closed_peers.stop()

    # Who is here

    def may_enter(self) -> bool:
        """Whether one more connection can be had; says so once when not."""
        count, allowed = self._counters.connections, self.broker.settings.max_connections
        if count < min(allowed, self._descriptors):
            self._counters.connections += 1
            self._counters.connections_accepted += 1
            self._is_full = False
            return True
        self._counters.connections_refused += 1
        if not self._is_full:
            self._is_full = True
            reason = (
                f"max.connections={allowed} is reached"
                if allowed <= self._descriptors
                else f"the system allows this process {descriptors.allowed()} open files, and the others are for "
                "the log; raise the limit with ulimit -n"
            )
            self._refusals.warning("refusing connections beyond %d: %s", count, reason)
        return False

    def add(self, connection: Connection) -> None:
        self._connections[connection] = None

    def forget(self, connection: Connection) -> None:
        self.one_less()
        self._connections.pop(connection, None)
        if self._all_gone is not None and not self._connections:
            self._all_gone.set()

    def one_less(self) -> None:
        """Somebody who was let in has gone."""
        self._counters.connections -= 1

    def violated(self, connection: Connection, violation: ProtocolViolation) -> None:
        self._counters.protocol_violations += 1
        self._violations.warning("closing the connection of %s: %s", connection.describe(), violation)

    # What they hold

    def memory_changed(self, change: int) -> None:
        """Keep the memory of unfinished requests bounded: past the limit, whoever holds most has to go."""
        self._counters.request_bytes += change
        if change > 0 and self._counters.request_bytes > self.broker.settings.queued_max_request_bytes:
            largest = max(self._connections, key=lambda connection: connection.held_bytes)
            self._counters.closed_for_request_memory += 1
            self._greedy.warning(
                "closing the connection of %s, which holds %d bytes of unfinished requests: all of them together "
                "hold more than queued.max.request.bytes=%d",
                largest.describe(),
                largest.held_bytes,
                self.broker.settings.queued_max_request_bytes,
            )
            largest.abort()

    def _sweep(self) -> None:
        """Close connections that have been silent too long: half-open ones would stay for ever."""
        idle_ms = self.broker.settings.connections_max_idle_ms
        now_ms = self.clock.monotonic_ms()
        for connection in list(self._connections) if idle_ms >= 0 else ():
            if connection.was_active or connection.is_waiting_for_answer:
                connection.was_active, connection.seen_active_ms = False, now_ms
            elif connection.seen_active_ms < now_ms - idle_ms:
                connection.abort()
        self._sweep_later()

    def _sweep_later(self) -> None:
        """Often enough that nobody is idle for much longer than allowed."""
        idle_ms = self.broker.settings.connections_max_idle_ms
        interval_ms = min(MINUTE_MS, max(SWEEP_MS_MIN, idle_ms / 2)) if idle_ms >= 0 else MINUTE_MS
        self._sweep_timer = self.clock.call_later(interval_ms, self._sweep)
