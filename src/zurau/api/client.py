"""The other end of a connection, whatever protocol it speaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from zurau.api.response_memory import ResponseShare
from zurau.broker.caller import Caller
from zurau.ids import Address
from zurau.pending import Running


class ConnectionState:
    """What the requests of one connection have in common."""

    __slots__ = ("at_end", "is_appending", "waiting_bytes")

    def __init__(self) -> None:
        #: What handlers that wait, and sessions, hold besides the request itself.
        self.waiting_bytes = 0
        #: A produce has not come to all its partitions yet: the next one must not begin, or it would overtake it.
        self.is_appending = False
        #: Called when the connection has ended, each once and in order.
        self.at_end: dict[Callable[[], None], None] = {}

    def end(self) -> None:
        for call in list(self.at_end):
            call()
        self.at_end.clear()


class Client(NamedTuple):
    """Who is at the other end, and what its requests are answered with."""

    caller: Caller
    #: Where this client shall be told to find this broker.
    dialled: Address
    #: Told when a handler that waited can go on; None: it simply does.
    resume: Callable[[Running[Any]], None] | None = None
    #: What this client's answers hold; None: nobody counts.
    responses: ResponseShare | None = None
    connection: ConnectionState = ConnectionState()
