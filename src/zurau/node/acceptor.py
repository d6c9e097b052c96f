"""Takes addresses and accepts whoever connects to them, for any protocol.

The loops' own servers are not used: uvloop's accepts one connection in each turn of its loop, so a busy broker would
keep a crowd of reconnecting clients waiting for seconds, and neither can refuse connections while there are too few
descriptors left for files.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from zurau.errors import SettingsError, raise_if_broken
from zurau.node.rate_limited_log import RateLimitedLog
from zurau.node.turns import LoopTurns

log = logging.getLogger("zurau.acceptor")

#: Pending connections the kernel may hold: many clients reconnect at once after a restart.
BACKLOG = 1024
#: Accepted in one step of the loop; each takes about a tenth of a millisecond.
ACCEPTS_PER_STEP = 50
#: How long nothing is accepted after the system refused to hand out a connection.
PAUSE_S = 0.1
#: A client whose machine or network has gone is noticed within two minutes, not after the system's two hours.
KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}


async def bind(host: str, port: int, flag: str) -> list[socket.socket]:
    """Take an address without listening yet, so that a broker that cannot have it touches nothing."""
    sockets: list[socket.socket] = []
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, _, _, _, address in dict.fromkeys(found):
            sockets.append(_bind_one(family, address))
    except OSError as error:
        for bound in sockets:
            bound.close()
        raise SettingsError(
            f"cannot listen on {host}:{port}: {_reason(error)}; "
            f"choose another address with {flag} HOST:PORT (port 0 takes a free one)"
        ) from error
    return sockets


def _bind_one(family: int, address: Any) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setblocking(False)
        if address[
            1
        ]:  # among those that may be used again the system would give a free one to two who do not listen yet
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def size_buffers(bound: socket.socket, receive_bytes: int, send_bytes: int) -> None:
    """Before it listens: what the system may hold of each connection. -1: as it thinks fit."""
    for option, size in ((socket.SO_RCVBUF, receive_bytes), (socket.SO_SNDBUF, send_bytes)):
        if size >= 0:
            bound.setsockopt(socket.SOL_SOCKET, option, size)


def _reason(error: OSError) -> str:
    """What the system says of an address, or the resolver of a name."""
    if isinstance(error, socket.gaierror):
        return str(error.strerror)
    return os.strerror(error.errno) if error.errno else str(error)


class Acceptor:
    """Listens on some sockets. `may_enter` is asked for each client; `connect` makes the protocol that serves it.

    `failed` is called for a client that was let in and then never got its protocol.
    """

    def __init__(
        self,
        sockets: list[socket.socket],
        turns: LoopTurns,
        may_enter: Callable[[], bool],
        connect: Callable[[], asyncio.BaseProtocol],
        failed: Callable[[], None],
    ) -> None:
        self._sockets = sockets
        self._turns = turns
        self._may_enter = may_enter
        self._connect = connect
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._making: set[asyncio.Task[Any]] = set()
        self._rate_limited = RateLimitedLog(log)

    def start(self) -> None:
        for listening in self._sockets:
            listening.listen(BACKLOG)
            # From now on nobody else can have it, and the next start may, though connections of this one linger.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._loop.add_reader(listening, self._accept, listening)

    async def stop(self) -> None:
        """Accept no more; returns when every connection that was accepted has its protocol."""
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            listening.close()
        if self._making:
            await asyncio.wait(self._making)

    def _accept(self, listening: socket.socket) -> None:
        """Accept all that there are, or many; the loop comes back for the rest."""
        self._turns.begin()
        for _ in range(ACCEPTS_PER_STEP):
            try:
                accepted, _ = listening.accept()
            except BlockingIOError:
                break
            except (InterruptedError, ConnectionAbortedError):
                continue
            except OSError as error:
                self._pause(listening, error)
                break
            if self._may_enter():
                self._make(accepted)
            else:
                accepted.close()
        self._turns.end(self._accept)

    def _make(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        with suppress(OSError):  # it may be gone already
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in KEEPALIVE.items():
                if hasattr(socket, name):  # not every system has all of them
                    accepted.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._connect, accepted))
        self._making.add(task)
        task.add_done_callback(lambda task: self._made(task, accepted))

    def _made(self, task: asyncio.Task[Any], accepted: socket.socket) -> None:
        self._making.discard(task)
        failure = asyncio.CancelledError() if task.cancelled() else task.exception()
        if failure is not None:
            accepted.close()
            self._failed()
            raise_if_broken(failure)
            log.debug("a connection was lost while it was being accepted", exc_info=failure)

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        """Out of descriptors or memory, here or in the whole system: trying again at once would fail again."""
        advice = "raise fs.file-max" if error.errno == errno.ENFILE else "raise the limit with ulimit -n"
        self._rate_limited.warning("cannot accept connections: %s; %s", _reason(error), advice)
        self._loop.remove_reader(listening)
        self._loop.call_later(PAUSE_S, self._go_on, listening)

    def _go_on(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:
            self._loop.add_reader(listening, self._accept, listening)
