"""Work for one thread, shared out fairly between those who ask for it.

Whoever has one piece of work does not wait for all the pieces of somebody who has many (start-time fair queuing).
Each piece begins, in virtual time, when the one before it of the same client is over, or now if that was long ago; the
one that begins first is next. So a client's own pieces keep their order, clients take turns, and one who comes anew
goes before those who have had their turn already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from operator import itemgetter
from typing import Any, Generic, TypeVar

from zurau.pending import Pending
from zurau.ports import Workers

T = TypeVar("T")


class FairOrder(Generic[T]):
    """Who is next. Keeps what waits, and does nothing with it."""

    __slots__ = ("_clients", "_ends", "_now", "_numbers", "_size", "_waiting")

    def __init__(self) -> None:
        #: What each client has waiting, in its order, each with its number. No client is here with nothing.
        self._waiting: dict[Hashable, deque[tuple[int, T]]] = {}
        #: One entry for each of those: when its first piece begins, in virtual time, and the number of that piece.
        self._clients: list[tuple[int, int, Hashable]] = []
        self._size = 0
        self._numbers = count()
        self._now = 0
        #: When each client's last piece to have had its turn is over, in virtual time.
        self._ends: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return self._size

    def add(self, client: Hashable, piece: T) -> None:
        self._size += 1
        waiting = self._waiting.get(client)
        if waiting is not None:
            waiting.append((next(self._numbers), piece))
        else:
            self._waiting[client] = deque([(next(self._numbers), piece)])
            self._stand_in_line(client)

    def next(self, is_busy: Callable[[Hashable], bool] | None = None) -> tuple[Hashable, T] | None:
        """The piece whose turn it is, of a client that is not busy; None if there is none."""
        passed_over = []
        try:
            while self._clients:
                entry = heappop(self._clients)
                begins, _, client = entry
                if is_busy is not None and is_busy(client):
                    passed_over.append(entry)
                    continue
                self._now = max(self._now, begins)
                return client, self._take_first(client, begins)
            return None
        finally:
            for entry in passed_over:
                heappush(self._clients, entry)

    def _take_first(self, client: Hashable, begins: int) -> T:
        self._size -= 1
        self._ends[client] = begins + 1
        waiting = self._waiting[client]
        _, piece = waiting.popleft()
        if waiting:
            self._stand_in_line(client)
        else:
            del self._waiting[client]
        if len(self._ends) > 2 * (len(self._waiting) + 1):  # most are of clients that have had their turns
            self._ends = {each: ends for each, ends in self._ends.items() if ends > self._now}
        return piece

    def _stand_in_line(self, client: Hashable) -> None:
        number, _ = self._waiting[client][0]
        heappush(self._clients, (max(self._now, self._ends.get(client, 0)), number, client))

    def count(self, is_wanted: Callable[[T], bool]) -> int:
        return sum(is_wanted(piece) for waiting in self._waiting.values() for _, piece in waiting)

    def take(self, is_wanted: Callable[[T], bool]) -> list[T]:
        """All pieces of a kind, out of their turn."""
        taken: list[tuple[int, T]] = []
        for client, waiting in list(self._waiting.items()):
            left = deque(entry for entry in waiting if not is_wanted(entry[1]))
            taken += (entry for entry in waiting if is_wanted(entry[1]))
            if left:
                self._waiting[client] = left
            else:
                del self._waiting[client]
        self._size -= len(taken)
        self._clients = [entry for entry in self._clients if entry[2] in self._waiting]
        heapify(self._clients)
        return [piece for _, piece in sorted(taken, key=itemgetter(0))]

    def is_next(self, client: Hashable) -> bool:
        """Whether the next piece is this client's."""
        return bool(self._clients) and self._clients[0][2] == client


class FairQueue:
    """Work for a worker. One piece is under way at a time."""

    __slots__ = ("_closed", "_is_busy", "_order", "_workers")

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._order: FairOrder[tuple[Callable[[], Any], Pending[Any]]] = FairOrder()
        self._is_busy = False
        self._closed: Callable[[], Exception] | None = None

    def run(self, client: Hashable, work: Callable[[], T]) -> Pending[T]:
        """Have it done when its turn comes. Whoever wants it no longer resolves what is returned."""
        outcome: Pending[T] = Pending()
        if self._closed is not None:
            outcome.fail(self._closed())
            return outcome
        self._order.add(client, (work, outcome))
        self._next()
        return outcome

    def close(self, error: Callable[[], Exception]) -> None:
        """Begin nothing more, and tell those who wait. Whoever is at work is waited for by nobody."""
        self._closed = error
        while (waiting := self._order.next()) is not None:
            waiting[1][1].fail(error())

    def _next(self) -> None:
        while not self._is_busy and (waiting := self._order.next()) is not None:
            work, outcome = waiting[1]
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
