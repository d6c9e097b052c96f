"""Accepts Kafka clients and keeps count of them."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress

from zurau.api.kafka.call import Caller, Endpoint
from zurau.broker.broker import Broker
from zurau.errors import SettingsError
from zurau.node.connection import Connection
from zurau.ports import Clock, Timer
from zurau.settings import KIB, MINUTE_MS

log = logging.getLogger("zurau.listener")

SCRATCH_BYTES = 256 * KIB
SWEEP_MS_MIN = 10
#: How long a stop waits for clients to take what they are being sent.
GOODBYE_MS = 500
#: Pending connections the kernel may hold: many clients reconnect at once after a restart.
BACKLOG = 1024


async def bind(endpoint: Endpoint, connect: Callable[[], Connection]) -> asyncio.Server:
    """Take an address without accepting yet, so that a broker that cannot have it touches nothing."""
    try:
        return await asyncio.get_running_loop().create_server(
            connect, endpoint.host, endpoint.port, backlog=BACKLOG, start_serving=False
        )
    except OSError as error:
        raise SettingsError(
            f"cannot listen on {endpoint.host}:{endpoint.port}: {_reason(error)}; "
            "choose another address with --kafka HOST:PORT (port 0 takes a free one)"
        ) from error


async def _stop_accepting(server: asyncio.Server) -> None:
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        # Before the server is closed: asyncio 3.11 loses a connection that it has accepted and not yet made.
        loop.remove_reader(listening.fileno())
    await _give_turns()
    server.close()


async def _give_turns() -> None:
    """Let the loop do what follows from what was done: accepting and closing take a few rounds each."""
    for _ in range(4):
        await asyncio.sleep(0)


def _reason(error: OSError) -> str:
    """What the system says; asyncio wraps it in a sentence of its own that repeats the address."""
    return os.strerror(error.errno) if error.errno else str(error)


class Listener:
    """One listening socket and the connections that came through it."""

    def __init__(self, broker: Broker, clock: Clock, advertise: Endpoint | None) -> None:
        self.broker = broker
        self.clock = clock
        #: Every connection reads into this one buffer; what it reads is parsed before another one reads.
        self.scratch = bytearray(SCRATCH_BYTES)
        self.max_frame_bytes = broker.settings.socket_request_max_bytes
        self._advertise = advertise
        self._connections: dict[Connection, None] = {}
        self._held_bytes = 0
        self._server: asyncio.Server | None = None
        self._sweep_timer: Timer | None = None
        self._all_gone: asyncio.Event | None = None

    async def listen(self, server: asyncio.Server) -> Endpoint:
        """Start to accept at what `bind` took; returns the address with its real port."""
        self._server = server
        await server.start_serving()
        self._sweep_later()
        host, port = server.sockets[0].getsockname()[:2]
        return Endpoint(host, port)

    async def stop(self) -> None:
        """Accept no more and close every connection, once what it is being sent has left or after a while."""
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        if self._server is not None:
            await _stop_accepting(self._server)
        self._all_gone = asyncio.Event()
        for connection in list(self._connections):
            connection.close()
        if self._connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_gone.wait(), GOODBYE_MS / 1000)
        for connection in list(self._connections):
            connection.abort()
        await _give_turns()

    def admit(self, connection: Connection, transport: asyncio.Transport) -> Caller | None:
        """Count a new connection in; None when there are too many, or it is gone already."""
        peer = transport.get_extra_info("peername")
        if peer is None:
            return None  # reset while it was being accepted, as port scanners do
        if len(self._connections) >= self.broker.settings.max_connections:
            log.warning("refusing a connection: max.connections=%d reached", self.broker.settings.max_connections)
            return None
        self._connections[connection] = None
        sock: socket.socket = transport.get_extra_info("socket")
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        local = transport.get_extra_info("sockname")
        return Caller(host=peer[0], dialled=self._advertise or Endpoint(local[0], local[1]))

    def forget(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        if self._all_gone is not None and not self._connections:
            self._all_gone.set()

    def memory_changed(self, change: int) -> None:
        """Keep the memory of unfinished requests bounded: past the limit, whoever holds most has to go."""
        self._held_bytes += change
        if self._held_bytes > self.broker.settings.queued_max_request_bytes:
            largest = max(self._connections, key=lambda connection: connection.held_bytes)
            log.warning("closing a connection that holds %d bytes of unfinished requests", largest.held_bytes)
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
