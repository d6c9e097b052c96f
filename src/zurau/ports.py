"""What the inner rooms may ask of the world.

Each port has two sides: `node/` touches the real thing, `simulation/` invents one from a seed. Inner rooms are
handed these and import neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from zurau.counters import Counters
from zurau.pending import Pending, done

T = TypeVar("T")
Buffer = bytes | bytearray | memoryview


class WouldBlock(Exception):
    """The bytes are not in memory; a read that may wait for the disk has to happen off the loop."""


class File(Protocol):
    """An open file that grows at its end and is read anywhere.

    `read` and `flush` may be called from a worker while the loop appends; a close takes effect when they are done.
    Every method raises `DiskFault` when the disk refuses.
    """

    @property
    def size(self) -> int: ...

    def append(self, chunks: Sequence[Buffer]) -> None:
        """Write at the end, all or nothing: after a failure the size is as before."""

    def read(self, position: int, length: int, *, may_block: bool = True) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file. Raises `WouldBlock` if it would and may not.

        Only the loop asks for a read that may not block.
        """

    def truncate(self, size: int) -> None: ...

    def flush(self) -> None:
        """Return when everything appended so far survives a power failure. Blocks: call it from a worker."""

    def close(self) -> None: ...


class Disk(Protocol):
    """A directory tree. Paths are relative to its root, with `/`."""

    @property
    def root(self) -> Path:
        """Where it is, for people to read."""

    def open(self, path: str, *, create: bool = True) -> File:
        """Open for reading and appending; an absent file is created empty, or else raises `DiskFault`."""

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def file_size(self, path: str) -> int: ...

    def list_directory(self, path: str) -> list[str]:
        """Names in it, sorted; empty when there is no such directory."""

    def make_directory(self, path: str) -> None:
        """With its parents; existing ones are fine."""

    def rename(self, old: str, new: str) -> None:
        """Atomic, replacing `new`; durable once `flush_directory` of the parent returned."""

    def remove(self, path: str) -> None:
        """A file; an absent one is fine."""

    def remove_tree(self, path: str) -> None: ...

    def read_file(self, path: str) -> bytes | None:
        """The whole file, or None when absent."""

    def replace_file(self, path: str, content: bytes) -> None:
        """Old content or new, never a mixture, and durable on return. Blocks for a flush: keep it rare."""

    def flush_directory(self, path: str) -> None: ...

    def free_bytes(self) -> int: ...


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall clock in Unix milliseconds: for timestamps in records, never for intervals."""

    def monotonic_ms(self) -> float:
        """Never jumps: for deadlines and timers."""

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer: ...


class Workers(Protocol):
    """Threads for work that blocks. Results come back on the loop."""

    def run(self, work: Callable[[], T]) -> Pending[T]: ...


class Flusher(Protocol):
    """Group commit: whatever asks for a flush while one is under way shares the next one."""

    def flush(self, work: Callable[[], None]) -> Pending[None]:
        """Run `work` (blocking flushes of files) in the flush thread; done, or failed with its `DiskFault`."""


class Turns(Protocol):
    """The loop's time in slices, so that work which takes long gives way to others between them."""

    def is_over(self) -> bool:
        """Whether the present turn has taken its time. Cheap: ask for every item."""

    def next(self) -> Pending[None]:
        """Done in a later turn: `if turns.is_over(): await turns.next()`."""


class EndlessTurn:
    """For worlds without a loop that others wait for."""

    def is_over(self) -> bool:
        return False

    def next(self) -> Pending[None]:
        return done(None)


class Randomness(Protocol):
    def bytes(self, count: int) -> bytes: ...

    def below(self, bound: int) -> int: ...


@dataclass(frozen=True, slots=True)
class World:
    """All ports together, as a broker is handed them."""

    disk: Disk
    clock: Clock
    workers: Workers
    flusher: Flusher
    randomness: Randomness
    #: Names the time since the machine last started: what was written in it is there, flushed or not. Empty where the
    #: system does not tell.
    boot_id: str
    turns: Turns = field(default_factory=EndlessTurn)
    counters: Counters = field(default_factory=Counters)
