"""What comes in and goes out, before it means anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from zurau.api.client import Client
from zurau.broker.broker import Broker
from zurau.ports import Turns

JSON = "application/json"


class HttpRequest(msgspec.Struct, frozen=True):
    """A whole request. Header names are in lower case; of a header that came twice the last one counts."""

    method: str
    #: As it was sent: the path, and perhaps a question mark and the query.
    target: str
    headers: Mapping[str, str]
    body: bytes = b""


class HttpAnswer(msgspec.Struct, frozen=True):
    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    #: Nothing more is understood, or wanted, on this connection.
    is_last: bool = False


class Call(NamedTuple):
    """One request's surroundings."""

    broker: Broker
    client: Client
    #: Numbers in a row, for whatever is to be spread evenly.
    spread: Iterator[int]

    @property
    def turns(self) -> Turns:
        return self.broker.world.turns


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """Parent of what routes ask for. A field of another name is refused: it would be ignored in silence."""


class Told(msgspec.Struct):
    """Parent of what routes answer."""

    @property
    def own_status(self) -> HTTPStatus | None:
        """Where what is told decides that, and not the route."""
        return None


class Refusal(Told):
    """Every answer of 400 and above has this form."""

    #: One of Kafka's error codes or HTTP's, by name: for programs.
    code: str
    #: What is wrong, and what to do: for people.
    message: str
