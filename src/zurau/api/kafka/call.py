"""Who asks, and what they may use to be answered."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from zurau.api.response_memory import ResponseShare
from zurau.api.turns import InTurns
from zurau.broker.broker import Broker
from zurau.pending import Running
from zurau.ports import Turns

T = TypeVar("T")

#: So many items of an answer take a fraction of a millisecond to encode.
LONG = 100


class Endpoint(NamedTuple):
    """An address that a client can dial."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Caller(NamedTuple):
    """The other end of a connection."""

    host: str
    #: Where this client shall be told to find this broker.
    dialled: Endpoint
    #: Told when a handler that waited can go on; None: it simply does.
    resume: Callable[[Running[Any]], None] | None = None
    #: What this client's answers hold; None: nobody counts.
    responses: ResponseShare | None = None


@dataclass(slots=True)
class Call:
    """One request's surroundings."""

    broker: Broker
    version: int
    client_id: str | None
    client_host: str
    dialled: Endpoint
    responses: ResponseShare | None = None
    #: The answer may be large too: it is encoded in turns.
    takes_long: bool = False

    @property
    def turns(self) -> Turns:
        return self.broker.world.turns

    def in_turns(self, items: Collection[T]) -> InTurns[T]:
        """For `async for`: everybody else is served in between when the items take long."""
        self.takes_long = self.takes_long or len(items) > LONG
        return InTurns(items, self.turns)
