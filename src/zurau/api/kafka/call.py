"""Who asks, and what they may use to be answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from zurau.api.response_memory import ResponseShare
from zurau.broker.broker import Broker
from zurau.pending import Running


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
