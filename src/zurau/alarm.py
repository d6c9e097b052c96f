"""A timer for a deadline that moves.

Deadlines mostly move away: each heartbeat, fetch or flush puts one off. To set a timer anew each time would cost more
than the heartbeat, so one that is set for too early stays, and whoever it wakes looks again.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from zurau.ports import Clock, Timer


class Alarm:
    """Wakes no later than the earliest deadline that it was told since it woke last."""

    __slots__ = ("_clock", "_now_ms", "_timer", "_wake", "at_ms")

    def __init__(self, clock: Clock, wake: Callable[[], None], now_ms: Callable[[], float] | None = None) -> None:
        """`now_ms`: the time in which deadlines are told, if it is not the clock's monotonic one."""
        self._clock = clock
        self._wake = wake
        self._now_ms = now_ms or clock.monotonic_ms
        self._timer: Timer | None = None
        #: When it wakes.
        self.at_ms = math.inf

    def no_later_than(self, deadline_ms: float) -> None:
        if deadline_ms < self.at_ms:
            self.cancel()
            self.at_ms = deadline_ms
            self._timer = self._clock.call_later(max(0.0, deadline_ms - self._now_ms()), self._ring)

    def cancel(self) -> None:
        self.at_ms = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer, self.at_ms = None, math.inf
        self._wake()
