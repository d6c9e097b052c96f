"""Who waits for the high watermark to reach which offset.

There are many waits and few distinct offsets (every idle long poll waits for the same next record), so waits are kept
by offset with a heap over the offsets. Forgetting a wait is cheap: polls that time out on an idle partition leave
nothing behind.
"""

from __future__ import annotations

import heapq

from zurau.ids import Offset
from zurau.pending import Pending


class Waiters:
    __slots__ = ("_by_offset", "_offsets")

    def __init__(self) -> None:
        self._by_offset: dict[Offset, dict[Pending[None], None]] = {}
        #: Heap of the keys of `_by_offset`.
        self._offsets: list[Offset] = []

    def __bool__(self) -> bool:
        return bool(self._offsets)

    def __len__(self) -> int:
        return sum(map(len, self._by_offset.values()))

    def wait(self, offset: Offset) -> Pending[None]:
        """Done once `release` is called with `offset` or more."""
        pending: Pending[None] = Pending()
        waiting = self._by_offset.get(offset)
        if waiting is None:
            waiting = self._by_offset[offset] = {}
            heapq.heappush(self._offsets, offset)
        waiting[pending] = None
        return pending

    def any_upto(self, offset: Offset) -> bool:
        """Whether somebody may wait for `offset` or less."""
        return bool(self._offsets) and self._offsets[0] <= offset

    def forget(self, offset: Offset, pending: Pending[None]) -> None:
        """Whoever waited has given up."""
        waiting = self._by_offset.get(offset)
        if waiting is not None:
            waiting.pop(pending, None)

    def release(self, upto: Offset) -> None:
        """The high watermark is now `upto`."""
        while self._offsets and self._offsets[0] <= upto:
            for pending in self._by_offset.pop(heapq.heappop(self._offsets)):
                pending.resolve(None)

    def fail_all(self, error: Exception) -> None:
        """Nothing will ever be reached any more: the partition is gone or broken."""
        by_offset, self._by_offset, self._offsets = self._by_offset, {}, []
        for offset in sorted(by_offset):
            for pending in by_offset[offset]:
                pending.fail(error)
