"""Where tasks of asyncio meet values that arrive without it."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from zurau.pending import Pending

T = TypeVar("T")


def as_future(pending: Pending[T]) -> asyncio.Future[T]:
    """Let a task wait for a `Pending`."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def finish(outcome: Pending[T]) -> None:
        if future.cancelled():
            return
        try:
            future.set_result(outcome.result())
        except Exception as error:  # noqa: BLE001 - handed on to whoever awaits
            future.set_exception(error)

    pending.then(finish)
    return future
