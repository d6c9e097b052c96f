"""Which reads of a segment's file come from the disk: their checksums are checked.

A disk may change what it holds, and nobody notices before somebody reads it. What is in memory is as it was written, or
was checked when it came; so reads on the loop, which only take what is in memory, cost nothing. What a worker reads is
not in memory, or is much: then it asks. But the system reads ahead, and what it has read ahead is in memory and was
never checked. So whoever goes on where a read from the disk ended is sent to a worker too, and so on, up to what was
written a short while ago.
"""

from __future__ import annotations

from zurau.ports import File, WouldBlock
from zurau.settings import MIB

#: What was written last, in a file that this process writes to, is in memory because it was written.
RECENT_BYTES = 64 * MIB
#: Whoever asks a worker for no more than this has found that it is not in memory.
SURELY_COLD_BYTES = MIB // 2
#: Ends of reads that are remembered, for readers at different places.
REMEMBERED_ENDS = 32


class ColdReads:
    """Of one segment. Used by the loop and by workers."""

    __slots__ = ("_ends", "_found_bytes")

    def __init__(self, found_bytes: int) -> None:
        """`found_bytes`: as much of the file was there before this process wrote to it."""
        self._found_bytes = found_bytes
        #: Where reads from the disk ended. Replaced as a whole.
        self._ends: frozenset[int] = frozenset()

    def is_cold(self, file: File, start: int, stop: int, *, may_block: bool) -> bool:
        """Whether this has to be checked. Raises `WouldBlock` if so, and that may not be done here."""
        if not may_block:
            if start in self._ends:
                raise WouldBlock
            return False
        size = stop - start
        return size <= SURELY_COLD_BYTES or start in self._ends or not file.is_in_memory(start, size)

    def ended(self, start: int, stop: int, end_position: int) -> None:
        """A read from the disk is done, when the file had that end."""
        left = self._ends - {start} if len(self._ends) <= REMEMBERED_ENDS else frozenset()
        is_recent = self._found_bytes <= stop and end_position - stop <= RECENT_BYTES
        self._ends = left if is_recent or stop >= end_position else left | {stop}
