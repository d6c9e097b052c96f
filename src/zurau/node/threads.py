"""Threads for what blocks: a few workers for anything, and one flusher.

Both hand results back to the loop in batches: a thread that finishes many pieces of work while the loop is busy wakes
it once.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from zurau.node.turns import LoopTurns
from zurau.pending import Pending

T = TypeVar("T")
Job = tuple[Callable[[], Any], Pending[Any]]


class _Completions:
    """Carries outcomes from threads to the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: LoopTurns) -> None:
        self._loop = loop
        self._turns = turns
        self._outcomes: deque[tuple[Pending[Any], Any, BaseException | None]] = deque()
        self._lock = threading.Lock()
        self._wake_up_scheduled = False

    def add(self, outcomes: list[tuple[Pending[Any], Any, BaseException | None]]) -> None:
        with self._lock:
            self._outcomes.extend(outcomes)
            wake_up, self._wake_up_scheduled = not self._wake_up_scheduled, True
        if wake_up:
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                return  # the loop has closed: nobody waits for the outcome any more

    def _deliver(self) -> None:
        with self._lock:
            outcomes, self._outcomes = self._outcomes, deque()
            self._wake_up_scheduled = False
        self._turns.begin()
        try:
            while outcomes:
                pending, value, error = outcomes.popleft()
                if error is None:
                    pending.resolve(value)
                else:
                    pending.fail(error)
        finally:
            if outcomes:  # a callback had a defect, which asyncio logs; the others still get theirs
                self.add(list(outcomes))
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
        """Return when everything asked for has been done."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            if not job[1].is_done:  # or else whoever asked has been ended, and nobody wants the outcome
                self._completions.add([_outcome(job)])


class FlushThread:
    """Group commit: all flushes that were asked for while one ran are a group, done and reported together.

    A group may be large: one request can write to thousands of partitions. So groups take turns, a flush each, and
    whoever asks for one flush waits for one of each group that was there before, not for all of them.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: LoopTurns) -> None:
        self._completions = _Completions(loop, turns)
        self._asked: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def flush(self, work: Callable[[], None]) -> Pending[None]:
        pending: Pending[None] = Pending()
        self._asked.put((work, pending))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="flush", daemon=True)
            self._thread.start()
        return pending

    def stop(self) -> None:
        """Return when everything asked for has been flushed."""
        self._asked.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        groups: deque[_Group] = deque()
        is_stopping = False
        while groups or not is_stopping:
            asked = [] if groups or is_stopping else [self._asked.get()]
            while not self._asked.empty():
                asked.append(self._asked.get())
            is_stopping = is_stopping or None in asked
            jobs = deque(job for job in asked if job is not None)
            if jobs:
                groups.append(_Group(jobs, []))
            if groups:
                self._flush_one(groups)

    def _flush_one(self, groups: deque[_Group]) -> None:
        group = groups.popleft()
        group.outcomes.append(_outcome(group.jobs.popleft()))
        if group.jobs:
            groups.append(group)
        else:
            self._completions.add(group.outcomes)


class _Group(NamedTuple):
    """Flushes that were asked for at about the same time, and what became of those that are done."""

    jobs: deque[Job]
    outcomes: list[tuple[Pending[Any], Any, BaseException | None]]


def _outcome(job: Job) -> tuple[Pending[Any], Any, BaseException | None]:
    work, pending = job
    try:
        return pending, work(), None
    except Exception as error:  # noqa: BLE001 - carried to the loop, where whoever waits gets it
        return pending, None, error
