"""A bound of memory that costs little to keep.

Counting everything with each command would cost too much. What a command may add is added to a bound, and only when
that reaches the limit it is counted again what is really there.
"""

from __future__ import annotations

from collections.abc import Callable


class MemoryBound:
    """At most so many bytes are held."""

    __slots__ = ("held_bytes",)

    def __init__(self) -> None:
        self.held_bytes = 0

    def take(self, more_bytes: int, limit_bytes: int, count: Callable[[], int]) -> bool:
        """Whether so much more may be held; `count` tells what is held now."""
        if self.held_bytes + more_bytes > limit_bytes:
            self.held_bytes = count()
            if self.held_bytes + more_bytes > limit_bytes:
                return False
        self.held_bytes += more_bytes
        return True
