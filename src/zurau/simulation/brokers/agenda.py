"""What happens when, in a world of its own: one list of events in virtual time that all nodes and clients share.

Events of the same moment happen in the order in which they were put down.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable


class Agenda:
    """Time moves from event to event. Nothing takes time by itself."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.event_count = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._until_ms = 0.0

    def at(self, at_ms: float, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (max(at_ms, self.now_ms), self._count, act))

    def after(self, delay_ms: float, act: Callable[[], None]) -> None:
        self.at(self.now_ms + delay_ms, act)

    def run_until(self, until_ms: float) -> None:
        events = self._events
        self._until_ms = until_ms
        while events and events[0][0] <= until_ms:
            self.now_ms, _, act = heapq.heappop(events)
            self.event_count += 1
            act()
        self.now_ms = until_ms

    def pass_if_idle(self, duration_ms: float) -> bool:
        """Let time pass here and now if nothing else happens meanwhile; whether it did."""
        then_ms = self.now_ms + duration_ms
        if then_ms > self._until_ms or (self._events and self._events[0][0] <= then_ms):
            return False
        self.now_ms = then_ms
        return True
