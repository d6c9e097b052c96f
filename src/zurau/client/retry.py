"""One way to try again: wait a little longer each time, and stop at a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from zurau.client.chance import chance
from zurau.client.errors import ClientError

T = TypeVar("T")

FIRST_DELAY_S = 0.02
LONGEST_DELAY_S = 1.0
#: Between looks for a partition's next leader: it has one within a second or two, and every delay is time without it.
LEADER_DELAY_S = 0.2
#: An answer that takes longer than it should by so much: perhaps the broker hangs, and others know of another leader.
SUSPICION_S = 1.0


class Deadline:
    """A moment by which something has to be done."""

    __slots__ = ("_at",)

    def __init__(self, timeout_s: float) -> None:
        self._at = time.monotonic() + timeout_s

    @property
    def remaining_s(self) -> float:
        return max(0.0, self._at - time.monotonic())

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self._at


class Backoff:
    """Delays that double, with a random part so that many clients do not come back at once."""

    __slots__ = ("_longest_s", "_next_s")

    def __init__(self, longest_s: float = LONGEST_DELAY_S) -> None:
        self._next_s = FIRST_DELAY_S
        self._longest_s = longest_s

    def next_delay_s(self) -> float:
        delay_s = self._next_s * chance.uniform(0.8, 1.2)
        self._next_s = min(self._next_s * 2, self._longest_s)
        return delay_s


def retry(attempt: Callable[[], T], timeout_s: float, on_failure: Callable[[], None] = lambda: None) -> T:
    """The first success of `attempt`. What is not retriable, or still fails at the deadline, is raised."""
    deadline = Deadline(timeout_s)
    backoff = Backoff()
    while True:
        try:
            return attempt()
        except ClientError as error:
            delay_s = backoff.next_delay_s()
            if not error.retriable or delay_s > deadline.remaining_s:
                raise
        time.sleep(delay_s)
        on_failure()
