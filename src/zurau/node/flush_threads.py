"""Flushes, some at a time, in an order that is fair to those whose writes are flushed.

One request can write to thousands of partitions, or hundreds of megabytes: whoever else asks for one flush does not
wait for all of that. So clients take turns, several threads flush, and one client never has all of them. Flushes that
run side by side also share what the file system does for them (a commit of its journal).

Where many wait, the whole disk is flushed for them at once (`partition/group_flush.py`), unless that has just taken
longer than they would have by themselves: then others write much on the same file system. Whoever comes meanwhile is
flushed alone.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable

from zurau.node.threads import Completions
from zurau.node.turns import LoopTurns
from zurau.partition import group_flush
from zurau.partition.fair_queue import FairOrder
from zurau.partition.group_flush import Flush, flush_alone, flush_together
from zurau.pending import Pending
from zurau.ports import AfterAll, Disk

#: With more, a hundred flushes are not done sooner: the threads then wait for the interpreter.
FLUSH_THREADS = 4
#: As many of them as one client can have. With one that flushes everything, somebody else still finds one free.
ONE_CLIENT_MAX = 2
#: For so long logs are flushed one by one after a flush of everything that took longer than that.
ALONE_S = 1.0


class FlushThreads:
    """See the module. Threads start when first needed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: LoopTurns, disk: Disk | None = None) -> None:
        self._completions = Completions(loop, turns)
        self._loop = loop
        self._disk = disk
        #: What was asked for in this step of the loop. Handed over when it is done, all at once: one by one, the first
        #: would be flushed alone, and the threads fight with the loop for the interpreter meanwhile.
        self._asked_now: list[tuple[Hashable, Flush]] = []
        self._threads: list[threading.Thread] = []
        #: Guards what follows.
        self._lock = threading.Lock()
        self._waiting: FairOrder[Flush] = FairOrder()
        self._is_stopping = False
        #: How many flushes of each client are under way.
        self._under_way: dict[Hashable, int] = {}
        #: Threads with nothing to do, each by a lock that it waits for. Not a `Condition`: that is Python, and makes a
        #: lock for each wait, while the loop wants the interpreter to tell who waits for the flush that was done.
        self._idle: list[threading.Lock] = []
        self._is_flushing_all = False
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

    def stop(self) -> None:
        """Begin nothing more, and return when the flushes that were begun are done.

        What was asked for is not flushed by that: whoever stops a broker flushes everything at once.
        """
        self._asked_now = []
        with self._lock:
            self._is_stopping = True
            self._wake(len(self._idle))
        for thread in self._threads:
            thread.join()

    def _hand_over(self) -> None:
        asked, self._asked_now = self._asked_now, []
        if not asked:
            return
        with self._lock:
            for client, flush in asked:
                self._waiting.add(client, flush)
            wanted = 1 if self._can_be_together() else len(self._waiting)  # others would wake up for nothing
            missing = min(wanted - self._wake(wanted), FLUSH_THREADS - len(self._threads))
        for _ in range(missing):
            thread = threading.Thread(target=self._work, name=f"flush-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _wake(self, wanted: int) -> int:
        """Returns how many had nothing to do."""
        woken = min(wanted, len(self._idle))
        for _ in range(woken):
            self._idle.pop().release()
        return woken

    def _work(self) -> None:
        wake_up = threading.Lock()
        wake_up.acquire()
        while (taken := self._take(wake_up)) is not None:
            client, group, is_together = taken
            began_s = time.monotonic()
            if is_together:
                assert self._disk is not None
                self._completions.add(flush_together(self._disk, group))
            else:
                self._completions.add([flush_alone(flush) for flush in group])
            self._done(client, group, time.monotonic() - began_s, is_together=is_together)

    def _take(self, wake_up: threading.Lock) -> tuple[Hashable, list[Flush], bool] | None:
        """What to flush next, and whether together; waits until there is something. None: nothing ever more."""
        while True:
            with self._lock:
                if self._is_stopping:
                    return None
                if self._can_be_together():
                    self._is_flushing_all = True
                    return None, self._waiting.take(_can_be_together), True
                found = self._waiting.next(self._has_enough)
                if found is not None:
                    self._under_way[found[0]] = self._under_way.get(found[0], 0) + 1
                    return found[0], [found[1]], False
                self._idle.append(wake_up)
            wake_up.acquire()

    def _has_enough(self, client: Hashable) -> bool:
        return self._under_way.get(client, 0) >= ONE_CLIENT_MAX

    def _can_be_together(self) -> bool:
        """Whether enough wait for it, and it pays."""
        enough = group_flush.TOGETHER_MIN
        return (
            len(self._waiting) >= enough
            and not self._is_flushing_all
            and self._disk is not None
            and self._alone_s is not None
            and time.monotonic() >= self._together_from_s
            and self._waiting.count(_can_be_together) >= enough
        )

    def _done(self, client: Hashable, group: list[Flush], took_s: float, *, is_together: bool) -> None:
        with self._lock:
            if is_together:
                self._is_flushing_all = False
                if took_s > len(group) * (self._alone_s or 0.0):
                    self._together_from_s = time.monotonic() + ALONE_S
            else:
                if group[0].after_all is not None:
                    self._alone_s = took_s
                left = self._under_way.pop(client) - 1
                if left:
                    self._under_way[client] = left
            if self._waiting:  # of a client that had enough, or more than one thread can do
                self._wake(1)


def _can_be_together(flush: Flush) -> bool:
    return flush.after_all is not None
