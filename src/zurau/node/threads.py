"""Threads for what blocks: a few workers for anything, and one flusher.

Both hand results back to the loop in batches: a thread that finishes many pieces of work while the loop is busy wakes
it once.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, TypeVar

from zurau.errors import raise_if_broken
from zurau.node.turns import LoopTurns
from zurau.partition import group_flush
from zurau.partition.fair_queue import FairOrder
from zurau.partition.group_flush import Flush, Outcome, flush_alone, flush_together, outcome_of
from zurau.pending import Pending
from zurau.ports import AfterAll, Disk

T = TypeVar("T")
REPORTED_AT_ONCE = 32
#: For so long logs are flushed one by one after a flush of everything that took longer than that.
ALONE_S = 1.0
Job = tuple[Callable[[], Any], Pending[Any]]


class _Completions:
    """Carries outcomes from threads to the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: LoopTurns) -> None:
        self._loop = loop
        self._turns = turns
        self._outcomes: deque[Outcome] = deque()
        self._lock = threading.Lock()
        self._wake_up_scheduled = False

    def add(self, outcomes: list[Outcome]) -> None:
        with self._lock:
            self._outcomes.extend(outcomes)
            wake_up, self._wake_up_scheduled = not self._wake_up_scheduled, True
        if wake_up:
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                return  # the loop has closed: nobody waits for the outcome any more

    def _deliver(self) -> None:
        """A turn's worth of them; there may be thousands."""
        self._turns.begin()
        try:
            while self._outcomes and not self._turns.is_over():
                pending, value, error = self._outcomes.popleft()
                if error is None:
                    pending.resolve(value)
                else:
                    raise_if_broken(error)
                    pending.fail(error)
        finally:
            with self._lock:
                self._wake_up_scheduled = bool(self._outcomes)
            if self._wake_up_scheduled:  # also when a callback had a defect, which the loop is told of
                self._loop.call_soon(self._deliver)
            self._turns.end("what workers finished")


class Threads:
    """Workers: each piece of work runs in whichever thread is free. Threads start when first needed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: LoopTurns, count: int, name: str) -> None:
        self._completions = _Completions(loop, turns)
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._count = count
        self._name = name
        self._threads: list[threading.Thread] = []

    def run(self, work: Callable[[], T]) -> Pending[T]:
        pending: Pending[T] = Pending()
        if len(self._threads) < self._count:
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._jobs.put((work, pending))
        return pending

    def stop(self) -> None:
        """Begin nothing more, and return when everything that was begun is done."""
        _drop(self._jobs)
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not job[1].is_done:  # or else whoever asked has been ended, and nobody wants the outcome
                self._completions.add([outcome_of(*job)])


class FlushThread:
    """Flushes, one after the other, in an order that is fair to those whose writes are flushed.

    One request can write to thousands of partitions: whoever else asks for one flush does not wait for all of those.
    Where many wait, the whole disk is flushed for them at once (`partition/group_flush.py`), unless that has just
    taken longer than they would have by themselves: then others write much on the same file system.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: LoopTurns, disk: Disk | None = None) -> None:
        self._completions = _Completions(loop, turns)
        self._loop = loop
        self._disk = disk
        #: What was asked for in this step of the loop. Handed over when it is done, all at once: one by one, the thread
        #: would flush the first alone, and fight with the loop for the interpreter meanwhile.
        self._asked_now: list[tuple[Hashable, Flush]] = []
        self._asked: queue.SimpleQueue[list[tuple[Hashable, Flush]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        #: How long the last flush of a single log took, in seconds; None: that is not known.
        self._alone_s: float | None = None
        #: Until then nothing is flushed together.
        self._together_from_s = 0.0

    def flush(
        self, work: Callable[[], None], client: Hashable = None, after_all: AfterAll | None = None
    ) -> Pending[None]:
        pending: Pending[None] = Pending()
        self._asked_now.append((client, Flush(work, after_all, pending)))
        if len(self._asked_now) == 1:
            self._loop.call_soon(self._hand_over)
        return pending

    def _hand_over(self) -> None:
        if self._asked_now:
            asked, self._asked_now = self._asked_now, []
            self._asked.put(asked)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="flush", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Begin nothing more, and return when the flush that was begun is done.

        What was asked for is not flushed by that: whoever stops a broker flushes everything at once.
        """
        self._asked_now = []
        _drop(self._asked)
        self._asked.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        waiting: FairOrder[Flush] = FairOrder()
        outcomes: list[Outcome] = []
        while True:
            asked = [] if waiting else [self._asked.get()]
            while not self._asked.empty():
                asked.append(self._asked.get())
            for one in asked:
                if one is None:
                    return
                for client, flush in one:
                    waiting.add(client, flush)
            if self._flush_together(waiting):
                continue
            client, flush = waiting.next()
            outcomes.append(self._flush_alone(flush))
            # A client's flushes are reported together: each report wakes the loop.
            if not waiting.is_next(client) or len(outcomes) >= REPORTED_AT_ONCE:
                self._completions.add(outcomes)
                outcomes = []

    def _flush_alone(self, flush: Flush) -> Outcome:
        began_s = time.monotonic()
        outcome = flush_alone(flush)
        if flush.after_all is not None:
            self._alone_s = time.monotonic() - began_s
        return outcome

    def _flush_together(self, waiting: FairOrder[Flush]) -> bool:
        """False when not enough wait for it, or it does not pay."""
        began_s = time.monotonic()
        if self._disk is None or self._alone_s is None or began_s < self._together_from_s:
            return False
        enough = group_flush.TOGETHER_MIN
        if len(waiting) < enough or waiting.count(_can_be_together) < enough:
            return False
        group = waiting.take(_can_be_together)
        self._completions.add(flush_together(self._disk, group))
        ended_s = time.monotonic()
        if ended_s - began_s > len(group) * self._alone_s:
            self._together_from_s = ended_s + ALONE_S
        return True


def _can_be_together(flush: Flush) -> bool:
    return flush.after_all is not None


def _drop(jobs: queue.SimpleQueue[Any]) -> None:
    with suppress(queue.Empty):
        while True:
            jobs.get_nowait()
