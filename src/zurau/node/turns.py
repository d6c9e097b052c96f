"""The loop's time, shared out: whoever has used up its turn stands in line, and sockets are read in between."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from zurau.pending import Pending

TURN_S = 0.002


class LoopTurns:
    """The turns of one event loop. Whoever did not get its turn from here finds it over, and waits in line once."""

    __slots__ = ("_ends", "_line", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ends = 0.0
        self._line: deque[Pending[None]] = deque()

    def is_over(self) -> bool:
        return time.monotonic() > self._ends

    def next(self) -> Pending[None]:
        if not self._line:
            self._loop.call_soon(self._take)
        pending: Pending[None] = Pending()
        self._line.append(pending)
        return pending

    def _take(self) -> None:
        """One turn for those in line."""
        self._ends = time.monotonic() + TURN_S
        waiting = len(self._line)
        while waiting and not self.is_over():
            waiting -= 1
            self._line.popleft().resolve(None)
        if self._line:
            self._loop.call_soon(self._take)
