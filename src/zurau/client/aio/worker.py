"""One thread for the blocking calls of one object, which are made in the order they were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Worker:
    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    def begin(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._thread, partial(call, *args, **kwargs))

    async def do(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A call that was begun goes to its end, even if nobody waits for it any more."""
        return await self.begin(call, *args, **kwargs)

    def end(self) -> None:
        """No more calls. The thread ends with the one it is in."""
        self._thread.shutdown(wait=False)
