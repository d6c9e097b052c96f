"""Time, threads and chance that a test decides."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import TypeVar

from zurau.pending import Pending
from zurau.ports import Disk, World

T = TypeVar("T")

#: The sixth of January 2026, so that timestamps look like timestamps.
BEGINNING_MS = 1_767_657_600_000


class VirtualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    """Moves only when told; whatever was to be called by then is called in order."""

    def __init__(self) -> None:
        self._elapsed_ms = 0.0
        self._timers: list[tuple[float, int, VirtualTimer]] = []
        self._count = 0
        #: How far the wall clock is off: may be changed, and nobody's timers shall notice.
        self.wall_error_ms = 0

    def now_ms(self) -> int:
        return BEGINNING_MS + int(self._elapsed_ms) + self.wall_error_ms

    def monotonic_ms(self) -> float:
        return self._elapsed_ms

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(callback)
        self._count += 1
        heapq.heappush(self._timers, (self._elapsed_ms + max(0.0, delay_ms), self._count, timer))
        return timer

    def forget_timers(self) -> None:
        """The process that set them is gone."""
        self._timers.clear()

    def advance(self, duration_ms: float = 0) -> None:
        """Let time pass."""
        until_ms = self._elapsed_ms + duration_ms
        while self._timers and self._timers[0][0] <= until_ms:
            at_ms, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                self._elapsed_ms = at_ms
                timer.callback()
        self._elapsed_ms = until_ms


class SimulatedThreads:
    """Workers and flusher: work is done `delay_ms` after it was asked for, in the order of asking."""

    def __init__(self, clock: VirtualClock, delay_ms: float = 0) -> None:
        self._clock = clock
        self.delay_ms = delay_ms

    def run(self, work: Callable[[], T]) -> Pending[T]:
        pending: Pending[T] = Pending()

        def do() -> None:
            try:
                value = work()
            except Exception as error:  # noqa: BLE001 - carried to whoever waits, as threads do
                pending.fail(error)
            else:
                pending.resolve(value)

        self._clock.call_later(self.delay_ms, do)
        return pending

    def flush(self, work: Callable[[], None]) -> Pending[None]:
        return self.run(work)


class ShortTurns:
    """Turns that are over at once: whatever can be interrupted between two items is."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def is_over(self) -> bool:
        return True

    def next(self) -> Pending[None]:
        pending: Pending[None] = Pending()
        self._clock.call_later(0, lambda: pending.resolve(None))
        return pending


class SeededRandomness:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


def make_world(disk: Disk, clock: VirtualClock, seed: int = 0, boot_id: str = "") -> World:
    """A world on a disk; the disk and the clock outlive a broker that crashes, the rest is made anew."""
    workers, flusher = SimulatedThreads(clock), SimulatedThreads(clock, delay_ms=1)
    return World(disk, clock, workers, flusher, SeededRandomness(seed), boot_id, ShortTurns(clock))
