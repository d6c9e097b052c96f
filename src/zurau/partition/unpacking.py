"""Where batches are unpacked that take longer than a loop may wait.

How long it takes is known only afterwards: a few kilobytes may unpack to a hundred megabytes. So every piece of work
is given a limit, and there is one fair queue, with one worker, for each limit. Work begins in the first queue that it
seems to fit, and what turns out to unpack to more (`TooLarge`) goes on to the next. Somebody who sends bombs holds up
his own kind, however many connections he has, and no more than one bomb is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

from zurau.errors import Refused
from zurau.partition.fair_queue import FairQueue
from zurau.pending import Pending
from zurau.ports import Workers
from zurau.records.compression import TooLarge
from zurau.records.record import UNPACKED_BYTES_MAX
from zurau.settings import MIB

T = TypeVar("T")

#: About a millisecond, what most batches need, and ten.
SMALL_BYTES = 1 * MIB
MEDIUM_BYTES = 16 * MIB


class Unpacking:
    """The queues of a broker."""

    __slots__ = ("_queues",)

    def __init__(self, workers: Workers) -> None:
        limits = SMALL_BYTES, MEDIUM_BYTES, UNPACKED_BYTES_MAX
        self._queues = [(limit_bytes, FairQueue(workers)) for limit_bytes in limits]

    def run(self, client: Hashable, work: Callable[[int], T], likely_bytes: int = 0) -> Pending[T]:
        """What `work` returns when it may unpack as much as it needs. Resolve it, and what did not begin never does."""
        outcome: Pending[T] = Pending()
        self._try(client, work, likely_bytes, outcome)
        return outcome

    def close(self, error: Callable[[], Refused]) -> None:
        for _, queue in self._queues:
            queue.close(error)

    def _try(self, client: Hashable, work: Callable[[int], Any], needed_bytes: int, outcome: Pending[Any]) -> None:
        limit_bytes, queue = next((one for one in self._queues if needed_bytes <= one[0]), self._queues[-1])
        attempt = queue.run(client, partial(_unless_done, outcome, work, limit_bytes))
        attempt.then(partial(self._tried, client, work, limit_bytes, outcome))

    def _tried(
        self,
        client: Hashable,
        work: Callable[[int], Any],
        limit_bytes: int,
        outcome: Pending[Any],
        attempt: Pending[Any],
    ) -> None:
        if isinstance(attempt.error, TooLarge) and limit_bytes < self._queues[-1][0]:
            self._try(client, work, limit_bytes + 1, outcome)
        elif attempt.error is not None:
            outcome.fail(attempt.error)
        else:
            outcome.resolve(attempt.result())


def _unless_done(outcome: Pending[Any], work: Callable[[int], T], limit_bytes: int) -> T | None:
    """Whoever asked may have gone while this waited."""
    return None if outcome.is_done else work(limit_bytes)
