"""Waiting with a deadline, and for what nobody announces: look, pause, look again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from zurau.pending import Pending
from zurau.ports import Clock


def pause(clock: Clock, duration_ms: float) -> Pending[None]:
    paused: Pending[None] = Pending()
    clock.call_later(duration_ms, partial(paused.resolve, None))
    return paused


async def until(clock: Clock, is_true: Callable[[], bool], *, every_ms: float, at_most_ms: float) -> bool:
    """Whether it became true in time."""
    deadline_ms = clock.monotonic_ms() + at_most_ms
    while not is_true():
        if clock.monotonic_ms() >= deadline_ms:
            return False
        await pause(clock, every_ms)
    return True


async def with_timeout(timeout_ms: float, awaited: Pending[Any], clock: Clock) -> bool:
    """Wait until `awaited` is done or the time is over; False when it was the time. Its outcome is left alone."""
    if awaited.is_done:
        return True
    if timeout_ms <= 0:
        return False
    either: Pending[None] = Pending()
    timer = clock.call_later(timeout_ms, lambda: either.resolve(None))
    awaited.then(lambda _: either.resolve(None))
    try:
        await either
    finally:
        timer.cancel()
    return awaited.is_done
