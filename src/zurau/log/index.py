"""The two sparse indexes of a segment.

Every few kilobytes of log the offset index gets (relative offset of a batch's last record, position of the batch) and
the time index (largest timestamp so far, relative offset of the batch that has it). Both ascend, so both are searched
by halving, one small read a step; nothing is loaded. New entries gather in memory and are written when the log says
that the data they point into is flushed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from zurau.errors import CorruptData
from zurau.ids import Offset
from zurau.ports import Disk, File

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")


class Index:
    """Fixed-size entries: the older ones in a file, the newest in memory. The loop writes, workers may read."""

    __slots__ = ("_disk", "_entry", "_file", "_path", "_state", "in_memory")

    def __init__(self, disk: Disk, path: str, entry: struct.Struct, stored_bytes: int) -> None:
        self._disk = disk
        self._path = path
        self._entry = entry
        self._file: File | None = None
        self._keep(stored_bytes // entry.size, bytearray())

    def _keep(self, stored: int, in_memory: bytearray) -> None:
        #: How many entries are in the file, and those after them. One tuple, so that a worker that takes both takes
        #: them from the same moment; the tail grows in place but is never cut, only replaced.
        self._state = (stored, in_memory)
        #: The latter once more, for the loop, which asks for every batch how large it is.
        self.in_memory = in_memory

    def __len__(self) -> int:
        stored, tail = self._state
        return stored + len(tail) // self._entry.size

    def entry(self, number: int, *, may_block: bool = True) -> tuple[Any, ...]:
        """Entry `number`, counted from 0, or from the end if negative."""
        stored, tail = self._state
        size = self._entry.size
        if number < 0:
            number += stored + len(tail) // size
        if number >= stored:
            return self._entry.unpack_from(tail, (number - stored) * size)
        data = self._open().read(number * size, size, may_block=may_block)
        if len(data) < size:
            raise CorruptData(f"{self._path} has no entry {number}; remove it and it is made again")
        return self._entry.unpack(data)

    def last(self, *, may_block: bool = True) -> tuple[Any, ...] | None:
        return self.entry(-1, may_block=may_block) if len(self) else None

    def last_at_most(self, bound: int, *, field: int = 0, may_block: bool = True) -> tuple[Any, ...] | None:
        """The last entry whose field is `bound` or less, or None if all are more."""
        count = self.count_below(bound + 1, field=field, may_block=may_block)
        return self.entry(count - 1, may_block=may_block) if count else None

    def count_below(self, bound: int, *, field: int = 0, may_block: bool = True) -> int:
        """How many entries have a field that is less than `bound`."""
        stored, tail = self._state
        size, unpack_from = self._entry.size, self._entry.unpack_from
        low, high = 0, stored + len(tail) // size
        while low < high:
            middle = (low + high) // 2
            if middle >= stored:  # as mostly: whoever reads on looks for it once for each read
                entry = unpack_from(tail, (middle - stored) * size)
            else:
                entry = self.entry(middle, may_block=may_block)
            if entry[field] < bound:
                low = middle + 1
            else:
                high = middle
        return low

    def append(self, *fields: int) -> None:
        self.in_memory.extend(self._entry.pack(*fields))

    def write_out(self, count: int) -> None:
        """Move the first `count` entries from memory to the file. After a failure they are still in memory.

        The file is made even if there are none: Kafka's tools miss it otherwise.
        """
        stored, tail = self._state
        ready = tail[: max(0, count - stored) * self._entry.size]
        file = self._open(create=True)
        if ready:
            if file.size != stored * self._entry.size:
                file.truncate(stored * self._entry.size)  # a crash left part of an entry
            file.append((ready,))
            self._keep(count, tail[len(ready) :])

    def truncate(self, count: int) -> None:
        """Keep the first `count` entries."""
        stored, tail = self._state
        if count < stored:
            file = self._open()
            file.truncate(count * self._entry.size)
            file.flush()
            self._keep(count, bytearray())
        else:
            self._keep(stored, tail[: (count - stored) * self._entry.size])

    def stored(self) -> Iterator[tuple[Any, ...]]:
        """The entries that are in the file, all at once. A partial last one is left out."""
        data = self._disk.read_file(self._path) or b""
        return self._entry.iter_unpack(data[: len(data) // self._entry.size * self._entry.size])

    @property
    def stored_count(self) -> int:
        return self._state[0]

    def flush(self) -> None:
        file = self._file
        if file is not None:
            file.flush()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _open(self, *, create: bool = False) -> File:
        file = self._file
        if file is None:
            file = self._file = self._disk.open(self._path, create=create)
        return file


class OffsetIndex(Index):
    """Where batches are, by offset. Offsets are relative to the segment's base offset, as in the file."""

    __slots__ = ()

    def __init__(self, disk: Disk, path: str, stored_bytes: int = 0) -> None:
        super().__init__(disk, path, OFFSET_ENTRY, stored_bytes)

    def position_before(self, relative_offset: Offset, *, may_block: bool = True) -> int:
        """A position at or before the batch that holds the offset; never after it."""
        entry = self.last_at_most(relative_offset, may_block=may_block)
        return entry[1] if entry else 0

    def position_at_most(self, position: int, *, may_block: bool = True) -> int:
        """The last known start of a batch at or before `position`."""
        entry = self.last_at_most(position, field=1, may_block=may_block)
        return entry[1] if entry else 0


class TimeIndex(Index):
    """Where timestamps rise. An entry (time, offset) says that every later time is behind that offset's batch."""

    __slots__ = ()

    def __init__(self, disk: Disk, path: str, stored_bytes: int = 0) -> None:
        super().__init__(disk, path, TIME_ENTRY, stored_bytes)

    def offset_before(self, timestamp_ms: int, *, may_block: bool = True) -> Offset:
        """A relative offset before which nothing is as late as `timestamp_ms`."""
        entry = self.last_at_most(timestamp_ms - 1, may_block=may_block)
        return entry[1] if entry else 0
