"""The loop's time, shared out: no step of it is long, and one that is all the same gets logged.

A step is what the loop calls without looking at anything else meanwhile: bytes arrived, a worker finished, a timer
fired. Each step begins a turn of two milliseconds. Whatever is ready when the turn is over (further requests of a
client that sent thousands, the next of ten thousand long polls that one record woke, the next of fifty thousand
partitions) stands in line and gets its turns in later steps, with sockets being read and accepted in between.

There are two lines: of those who have not begun or were woken, and of those whose work is unfinished after a whole
turn. Each step serves the first line for a turn and one of the second for another, so a hundred requests that take
seconds each do not make somebody wait whose own takes no time.

One piece of work that does not stop in time is a defect. It can only be the last one that was begun in its step, so
that is the one the watchdog names.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from zurau.counters import Counters
from zurau.node.rate_limited_log import RateLimitedLog
from zurau.pending import Pending

log = logging.getLogger("zurau.watchdog")

TURN_S = 0.002
#: How long a thread that wants the interpreter waits until it demands it. Less than a turn: a loop that gives it up
#: between its turns takes it back before the thread is awake, and a busy loop would keep a flush waiting for seconds.
SWITCH_S = TURN_S / 4
SLOW_S = 0.1

_now = time.monotonic


class Doer(Protocol):
    """Whoever has something done in a step."""

    def describe_work(self) -> str:
        """For the watchdog: which API, for whom."""


class LoopTurns:
    """The turns of one event loop."""

    __slots__ = (
        "_began",
        "_counters",
        "_ends",
        "_is_scheduled",
        "_loop",
        "_rate_limited",
        "_unfinished",
        "doer",
        "line",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, counters: Counters) -> None:
        self._loop = loop
        self._counters = counters
        self._rate_limited = RateLimitedLog(log)
        self._began = self._ends = 0.0
        #: Who waits for a turn; `later` is the way into it.
        self.line: deque[Callable[[], None]] = deque()
        self._unfinished: deque[Pending[None]] = deque()
        self._is_scheduled = False
        #: Who began the last piece of work: set it before beginning one.
        self.doer: Doer | None = None

    def begin(self) -> None:
        """A step of the loop begins. Whatever forgets to say so finds its turn over, and waits in line."""
        self._began = now = _now()
        self._ends = now + TURN_S
        self.doer = None

    def end(self, step: object = None) -> None:
        """The step is over; `step` says what it was when no client's work was done in it."""
        took = _now() - self._began
        if took > SLOW_S:
            self._was_slow(took, step)

    def is_over(self) -> bool:
        return _now() > self._ends

    def next(self) -> Pending[None]:
        pending: Pending[None] = Pending()
        self._unfinished.append(pending)
        self._schedule()
        return pending

    def later(self, work: Callable[[], None]) -> None:
        """Stand in line."""
        self.line.append(work)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._take)

    def _take(self) -> None:
        """A turn for those in line, and one for somebody whose work is unfinished."""
        line, unfinished = self.line, self._unfinished
        self.begin()
        try:
            while line and _now() < self._ends:
                line.popleft()()
            if unfinished:
                self._ends = _now() + TURN_S
                unfinished.popleft().resolve(None)
        finally:
            self._is_scheduled = False
            if line or unfinished:
                self._schedule()
            self.end(self._take)

    def _was_slow(self, took: float, step: object) -> None:
        self._counters.slow_steps += 1
        self._counters.slowest_step_ms = max(self._counters.slowest_step_ms, took * 1000)
        what = self.doer.describe_work() if self.doer is not None else getattr(step, "__qualname__", str(step))
        self._rate_limited.warning("the loop was held for %.0f ms by %s; everybody else had to wait", took * 1000, what)
