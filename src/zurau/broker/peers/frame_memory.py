"""The memory of large frames that are arriving from other brokers, over all connections together.

A frame is given its memory when it is announced. One that would be too much waits: its connection is not read any more,
so the other side keeps it, until others have arrived and were heard. One frame alone is always let in, however large.
"""

from __future__ import annotations

from typing import Protocol

from zurau.settings import MIB

#: Two responses of each of a dozen brokers.
ARRIVING_BYTES_MAX = 128 * MIB


class Waiting(Protocol):
    def let_in(self) -> None:
        """There is memory for its frame now."""


class FrameMemory:
    """Invariant: `held_bytes` is what those in `_holders` hold; it is over the limit only for one that is alone."""

    def __init__(self) -> None:
        self.held_bytes = 0
        self._holders: dict[Waiting, int] = {}
        #: In the order in which they came.
        self._waiting: dict[Waiting, int] = {}

    def take(self, holder: Waiting, size: int) -> bool:
        """Whether there is memory for a frame at once; or else `let_in` is called when there is."""
        assert holder not in self._holders, "a connection has one frame that is arriving"
        if self._waiting or not self._has_room_for(size):
            self._waiting[holder] = size
            return False
        self._give(holder, size)
        return True

    def give_back(self, holder: Waiting) -> None:
        """Its frame was heard, or will not be."""
        self._waiting.pop(holder, None)
        self.held_bytes -= self._holders.pop(holder, 0)
        while self._waiting:
            first, size = next(iter(self._waiting.items()))
            if not self._has_room_for(size):
                return
            del self._waiting[first]
            self._give(first, size)
            first.let_in()

    def _has_room_for(self, size: int) -> bool:
        return not self._holders or self.held_bytes + size <= ARRIVING_BYTES_MAX

    def _give(self, holder: Waiting, size: int) -> None:
        self._holders[holder] = size
        self.held_bytes += size
