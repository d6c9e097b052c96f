"""Threads of which one runs at a time, and only when it is told to.

A broker's workers and its flush thread run plain blocking functions. In a simulation each of them gets a thread of the
operating system, so that it can be held in the middle of what it does, and whoever resumes it waits until it is held
again or has ended. So nothing ever runs at the same time, and the order of everything is the resumer's choice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

#: Threads that wait for work, shared by all worlds of this process: starting one takes long.
_idle: list[_Thread] = []


class Ended(BaseException):
    """Raised in a fiber, or on the loop, of a process that is no more: it unwinds and does nothing else."""


class _Thread:
    """One thread of the operating system, with the two locks by which it and its resumer take turns."""

    def __init__(self) -> None:
        self._go, self._back = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self.body: Callable[[], None] | None = None
        threading.Thread(target=self._run, name="fiber", daemon=True).start()

    def switch(self) -> None:
        """By the resumer: let it run until it gives way."""
        self._go.release()
        self._back.acquire()

    def give_way(self) -> None:
        """By itself."""
        self._back.release()
        self._go.acquire()

    def _run(self) -> None:
        while True:
            self._go.acquire()
            assert self.body is not None
            self.body()
            self.body = None
            self._back.release()


class Work:
    """A blocking function, and what came of it: a value or an error."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self.value: Any = None
        self.error: BaseException | None = None

    @classmethod
    def that_is_done(cls, value: Any, error: BaseException | None) -> Work:
        """One that others did."""
        work = Work(lambda: value)
        work.value, work.error = value, error
        return work

    def run(self) -> None:
        try:
            self.value = self._work()
        except BaseException as error:  # noqa: BLE001 - carried to whoever waits for it
            self.error = error


class Fiber(Work):
    """Work that can be held. `resume` it until it `is_done`."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(work)
        self._thread = _idle.pop() if _idle else _Thread()
        self._thread.body = self._body
        self._must_end = False
        self.is_done = False

    def resume(self) -> None:
        """Run on to the next `hold`, or to the end."""
        self._thread.switch()
        if self.is_done:
            _idle.append(self._thread)

    def hold(self) -> None:
        """By the work itself: go on when resumed."""
        self._thread.give_way()
        if self._must_end:
            raise Ended

    def end(self) -> None:
        """Its process is no more: unwind it."""
        self._must_end = True
        if not self.is_done:
            self.resume()
        assert self.is_done, "work of a process that has ended goes on"

    def _body(self) -> None:
        if not self._must_end:
            self.run()
        self.is_done = True
