"""Clients that have gone while nothing was read from them.

A client that has sent more requests than may be started is not read from, so nobody is told when it closes its end:
its long poll would go on for as long as it asked for, which can be weeks. The kernel knows the state of each
connection; it is asked once a second about those that wait like this.
"""

from __future__ import annotations

import socket
from typing import Protocol

from zurau.ports import Clock, Timer
from zurau.settings import SECOND_MS

LOOK_MS = 1 * SECOND_MS
#: Linux: what TCP_INFO begins with when the other end has closed, or reset, the connection.
_GONE = {7, 8}  # TCP_CLOSE, TCP_CLOSE_WAIT
_TCP_INFO: int | None = getattr(socket, "TCP_INFO", None)


class Unread(Protocol):
    """A connection from which nothing is read for the time being."""

    @property
    def is_waiting_for_answer(self) -> bool: ...

    @property
    def is_reading(self) -> bool: ...

    def socket(self) -> socket.socket | None: ...

    def abort(self) -> None: ...


class ClosedPeers:
    """Finds those of the unread whose other end is closed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unread: dict[Unread, None] = {}
        self._timer: Timer | None = None

    def watch(self, connection: Unread) -> None:
        self._unread[connection] = None
        if self._timer is None:
            self._timer = self._clock.call_later(LOOK_MS, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        unread, self._unread = self._unread, {}
        for connection in unread:
            if connection.is_reading or not connection.is_waiting_for_answer:
                continue  # whatever it does now will be noticed
            if is_closed_by_peer(connection.socket()):
                connection.abort()
            else:
                self.watch(connection)


def is_closed_by_peer(sock: socket.socket | None) -> bool:
    """Whether the other end has closed a connection; what it sent before may still be unread."""
    if sock is None or _TCP_INFO is None:
        return sock is None
    try:
        return sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 1)[0] in _GONE
    except OSError:
        return True
