"""Waiting with a deadline."""

from __future__ import annotations

from typing import Any

from zurau.pending import Pending
from zurau.ports import Clock


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
