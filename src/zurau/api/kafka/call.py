"""Who asks, and what they may use to be answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from zurau.broker.broker import Broker


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


@dataclass(slots=True)
class Call:
    """One request's surroundings."""

    broker: Broker
    version: int
    client_id: str | None
    client_host: str
    dialled: Endpoint
