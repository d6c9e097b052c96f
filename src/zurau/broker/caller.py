"""Who asks: every operation that several front ends share is told."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class Principal(NamedTuple):
    """Somebody that rules can be made for; prints as Kafka's tools write it."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


#: Whoever has not said who it is.
ANONYMOUS = Principal("User", "ANONYMOUS")


class Caller(NamedTuple):
    """Who asks, from where, and through which door."""

    principal: Principal
    #: The address that it calls from, as text and without the port: rules name hosts.
    host: str
    #: The name of the listener at which it arrived.
    listener: str
    #: Tells callers apart that share work in turns; None: there is but one.
    connection: Hashable = None
