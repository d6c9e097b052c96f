"""Time, threads and chance that a test decides."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Hashable
from typing import TypeVar

from zurau.errors import raise_if_broken
from zurau.partition.group_flush import Flush, flush_alone, flush_together
from zurau.pending import Pending
from zurau.ports import AfterAll, Disk, World

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

    def __init__(self, clock: VirtualClock, delay_ms: float = 0, disk: Disk | None = None) -> None:
        """`disk`: what is flushed as a whole when two or more wait for a flush at the same time."""
        self._clock = clock
        self.delay_ms = delay_ms
        self._disk = disk
        self._group: list[Flush] = []

    def run(self, work: Callable[[], T]) -> Pending[T]:
        pending: Pending[T] = Pending()

        def do() -> None:
            try:
                value = work()
            except Exception as error:  # noqa: BLE001 - carried to whoever waits, as threads do
                raise_if_broken(error)
                pending.fail(error)
            else:
                pending.resolve(value)

        self._clock.call_later(self.delay_ms, do)
        return pending

    def flush(
        self, work: Callable[[], None], client: Hashable = None, after_all: AfterAll | None = None
    ) -> Pending[None]:
        if self._disk is None or after_all is None:
            return self.run(work)
        flush = Flush(work, after_all, Pending())
        self._group.append(flush)
        if len(self._group) == 1:
            self._clock.call_later(self.delay_ms, self._flush_group)
        return flush.pending

    def _flush_group(self) -> None:
        group, self._group = self._group, []
        outcomes = (
            [flush_alone(group[0])] if len(group) == 1 or self._disk is None else flush_together(self._disk, group)
        )
        for pending, value, error in outcomes:
            if error is None:
                pending.resolve(value)
            else:
                raise_if_broken(error)
                pending.fail(error)


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
    workers, flusher = SimulatedThreads(clock), SimulatedThreads(clock, delay_ms=1, disk=disk)
    return World(disk, clock, workers, workers, flusher, SeededRandomness(seed), boot_id, ShortTurns(clock))
