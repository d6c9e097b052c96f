"""Threads for what blocks: a few workers for anything. `flush_threads.py` has those that flush.

All hand results back to the loop in batches: a thread that finishes many pieces of work while the loop is busy wakes
it once.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from zurau.errors import raise_if_broken
from zurau.node.turns import LoopTurns
from zurau.partition.group_flush import Outcome, outcome_of
from zurau.pending import Pending

T = TypeVar("T")
Job = tuple[Callable[[], Any], Pending[Any]]


class Completions:
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
        self._completions = Completions(loop, turns)
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


def _drop(jobs: queue.SimpleQueue[Any]) -> None:
    with suppress(queue.Empty):
        while True:
            jobs.get_nowait()
