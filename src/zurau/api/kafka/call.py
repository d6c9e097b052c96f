"""Who asks, and what they may use to be answered."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

import msgspec

from zurau.api.client import Client, ConnectionState
from zurau.api.response_memory import ResponseShare
from zurau.api.turns import InTurns
from zurau.broker.broker import Broker
from zurau.broker.caller import Caller
from zurau.ids import Address
from zurau.ports import Turns

T = TypeVar("T")

#: So many items of an answer take a fraction of a millisecond to encode.
LONG = 100


class Call(msgspec.Struct):
    """One request's surroundings."""

    broker: Broker
    version: int
    client_id: str | None
    client: Client
    #: The answer may be large too: it is encoded in turns.
    takes_long: bool = False
    #: It is known beforehand to be larger than others.
    is_large: bool = False
    #: Gone through in turns, in all.
    item_count: int = 0

    @property
    def caller(self) -> Caller:
        return self.client.caller

    @property
    def dialled(self) -> Address:
        return self.client.dialled

    @property
    def responses(self) -> ResponseShare | None:
        return self.client.responses

    @property
    def connection(self) -> ConnectionState:
        return self.client.connection

    @property
    def turns(self) -> Turns:
        return self.broker.world.turns

    def in_turns(self, items: Collection[T]) -> InTurns[T]:
        """For `async for`: everybody else is served in between when the items take long."""
        self.item_count += len(items)
        self.takes_long = self.takes_long or self.item_count > LONG
        return InTurns(items, self.turns)
