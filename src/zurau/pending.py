"""An answer that is not there yet, and how a coroutine waits for one without a task.

Handlers are `async def` so that they read from top to bottom, but most requests have their answer at once, and an
asyncio task each would cost more than the answer. So a handler awaits only `Pending` values, and `start` drives it:
it runs until the first `Pending` that is not done, and goes on from there when that one is. Nothing here knows of
an event loop, so the same handlers run in the simulator.

A coroutine whose client is gone is ended where it waits: its `finally` clauses give back what it holds.

Whatever a coroutine raises is carried to whoever asks for its result, except for a broken invariant (`AssertionError`):
that is raised at once, through whoever made it go on, because nobody may ever ask.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable
from inspect import CORO_RUNNING, getcoroutinestate
from typing import Any, Generic, TypeVar

from zurau.errors import raise_if_broken

T = TypeVar("T")


class Pending(Generic[T]):
    """A value that arrives once. Whoever waits is called back in the order of waiting."""

    __slots__ = ("_callbacks", "_error", "_value", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Pending[T]], None]] | None = None

    def resolve(self, value: T) -> None:
        """The value is here. A second call changes nothing: deadline and event may both fire."""
        if not self.is_done:
            self._value = value
            self._finish()

    def fail(self, error: BaseException) -> None:
        if not self.is_done:
            self._error = error
            self._finish()

    def then(self, callback: Callable[[Pending[T]], None]) -> None:
        """Call back when done, or right now if it is."""
        if self.is_done:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    @property
    def error(self) -> BaseException | None:
        """With what it failed, or None if it did not, or not yet."""
        return self._error

    def result(self) -> T:
        assert self.is_done, "the value has not arrived"
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def end(self) -> None:
        """Whoever waited has gone: call nobody back."""
        self._callbacks = None

    def __await__(self) -> Generator[Pending[T], None, T]:
        if not self.is_done:
            yield self
        return self.result()

    def _finish(self) -> None:
        self.is_done = True
        callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            callback(self)


def done(value: T) -> Pending[T]:
    """A `Pending` that already has its value."""
    pending: Pending[T] = Pending()
    pending._value = value
    pending.is_done = True
    return pending


class Running(Pending[T]):
    """A coroutine that awaits only `Pending` values, on its way; done with what it returns or raises."""

    __slots__ = ("_coroutine", "_resume")

    def __init__(self, coroutine: Coroutine[Any, None, T], resume: Callable[[Running[Any]], None] | None) -> None:
        super().__init__()
        self._coroutine: Coroutine[Any, None, T] | None = coroutine
        self._resume = resume

    def advance(self) -> None:
        """Run as far as it goes now."""
        coroutine = self._coroutine
        if coroutine is None:
            return  # it was ended while it waited
        try:
            awaited = coroutine.send(None)
        except StopIteration as stop:
            self._coroutine = None
            self.resolve(stop.value)
        except Exception as error:  # noqa: BLE001 - carried to whoever asks for the result
            self._coroutine = None
            raise_if_broken(error)
            self.fail(error)
        else:
            if self._coroutine is None:
                coroutine.close()  # ended by something that it did itself
            else:
                self.wait_for(awaited)

    def wait_for(self, awaited: object) -> None:
        assert isinstance(awaited, Pending), f"handlers await only Pending values, not {awaited!r}"
        awaited.then(self._arrived)

    def end(self) -> None:
        """Nobody waits for the outcome any more: run its `finally` clauses and nothing else."""
        super().end()
        coroutine, self._coroutine = self._coroutine, None
        if coroutine is not None and getcoroutinestate(coroutine) != CORO_RUNNING:
            coroutine.close()

    def _arrived(self, _: Pending[Any]) -> None:
        if self._resume is None:
            self.advance()
        else:
            self._resume(self)


def start(coroutine: Coroutine[Any, None, T], resume: Callable[[Running[Any]], None] | None = None) -> Pending[T]:
    """Run a coroutine that awaits only `Pending` values, as far as it goes now and onwards as they arrive.

    `resume`, if given, is told each time that it can go on, and calls `advance` when it sees fit.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as stop:
        return done(stop.value)  # as most are: nothing more is made for those
    except Exception as error:  # noqa: BLE001 - carried to whoever asks for the result
        raise_if_broken(error)
        failed: Pending[T] = Pending()
        failed.fail(error)
        return failed
    running = Running(coroutine, resume)
    running.wait_for(awaited)
    return running


def any_of(pendings: Iterable[Pending[Any]]) -> Pending[None]:
    """Done as soon as one of them is."""
    first: Pending[None] = Pending()
    for pending in pendings:
        pending.then(lambda _: first.resolve(None))
    return first


def all_of(pendings: Iterable[Pending[Any]]) -> Pending[None]:
    """Done when every one of them is."""
    waiting = [pending for pending in pendings if not pending.is_done]
    last: Pending[None] = Pending()
    remaining = len(waiting)

    def one_done(_: Pending[Any]) -> None:
        nonlocal remaining
        remaining -= 1
        if remaining == 0:
            last.resolve(None)

    if not waiting:
        last.resolve(None)
    for pending in waiting:
        pending.then(one_done)
    return last
