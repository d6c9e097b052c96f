"""Work for one client, cut into turns.

What a client lists may be long, and everybody else waits while the loop works on it. So whatever goes through such a
list goes through it in turns: `[answer(item) async for item in call.in_turns(items)]`. A list of one costs nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, Generic, Self, TypeVar

from zurau.ports import Turns

T = TypeVar("T")


class InTurns(Generic[T]):
    """The items, with others served in between when they take long."""

    __slots__ = ("_began", "_items", "_turns")

    def __init__(self, items: Iterable[T], turns: Turns) -> None:
        self._items = iter(items)
        self._turns = turns
        self._began = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        for item in self._items:
            if self._began and self._turns.is_over():
                await self._turns.next()
            self._began = True
            return item
        raise StopAsyncIteration


async def finish_in_turns(steps: Generator[Any, None, T], turns: Turns) -> T:
    """What a generator returns, with others served between its steps."""
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            value: T = finished.value
            return value
        if turns.is_over():
            await turns.next()
