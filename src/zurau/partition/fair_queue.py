"""Work for one thread, shared out fairly between those who ask for it.

Whoever has one piece of work does not wait for all the pieces of somebody who has many (start-time fair queuing).
Each piece begins, in virtual time, when the one before it of the same client is over, or now if that was long ago; the
one that begins first is next. So a client's own pieces keep their order, clients take turns, and one who comes anew
goes before those who have had their turn already.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Generic, TypeVar

from zurau.errors import Refused
from zurau.pending import Pending
from zurau.ports import Workers

T = TypeVar("T")


class FairOrder(Generic[T]):
    """Who is next. Keeps what waits, and does nothing with it."""

    __slots__ = ("_ends", "_now", "_numbers", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, Hashable, T]] = []
        self._numbers = count()
        self._now = 0
        #: When each client's last piece is over, in virtual time.
        self._ends: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, client: Hashable, piece: T) -> None:
        begins = max(self._now, self._ends.get(client, 0))
        self._ends[client] = begins + 1
        heappush(self._waiting, (begins, next(self._numbers), client, piece))

    def next(self) -> tuple[Hashable, T]:
        self._now, _, client, piece = heappop(self._waiting)
        if len(self._ends) > 2 * (len(self._waiting) + 1):  # most are of clients that have had their turns
            self._ends = {each: ends for each, ends in self._ends.items() if ends > self._now}
        return client, piece

    def count(self, is_wanted: Callable[[T], bool]) -> int:
        return sum(is_wanted(entry[3]) for entry in self._waiting)

    def take(self, is_wanted: Callable[[T], bool]) -> list[T]:
        """All pieces of a kind, out of their turn."""
        taken = [entry[3] for entry in sorted(self._waiting, key=lambda entry: entry[:2]) if is_wanted(entry[3])]
        self._waiting = [entry for entry in self._waiting if not is_wanted(entry[3])]
        heapify(self._waiting)
        return taken

    def is_next(self, client: Hashable) -> bool:
        """Whether the next piece is this client's."""
        return bool(self._waiting) and self._waiting[0][2] == client


class FairQueue:
    """Work for a worker. One piece is under way at a time."""

    __slots__ = ("_closed", "_is_busy", "_order", "_workers")

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._order: FairOrder[tuple[Callable[[], Any], Pending[Any]]] = FairOrder()
        self._is_busy = False
        self._closed: Callable[[], Refused] | None = None

    def run(self, client: Hashable, work: Callable[[], T]) -> Pending[T]:
        """Have it done when its turn comes. Whoever wants it no longer resolves what is returned."""
        outcome: Pending[T] = Pending()
        if self._closed is not None:
            outcome.fail(self._closed())
            return outcome
        self._order.add(client, (work, outcome))
        self._next()
        return outcome

    def close(self, error: Callable[[], Refused]) -> None:
        """Begin nothing more, and tell those who wait. Whoever is at work is waited for by nobody."""
        self._closed = error
        while self._order:
            self._order.next()[1][1].fail(error())

    def _next(self) -> None:
        while self._order and not self._is_busy:
            _, (work, outcome) = self._order.next()
            if not outcome.is_done:  # or else whoever asked has gone
                self._is_busy = True
                self._workers.run(work).then(partial(self._done, outcome))

    def _done(self, outcome: Pending[Any], worked: Pending[Any]) -> None:
        self._is_busy = False
        self._next()
        if worked.error is not None:
            outcome.fail(worked.error)
        else:
            outcome.resolve(worked.result())
