"""What the inner rooms may ask of the world.

Each port has two sides: `node/` touches the real thing, `simulation/` invents one from a seed. Inner rooms are
handed these and import neither.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from zurau.counters import Counters
from zurau.errors import FlushFailed
from zurau.ids import BrokerId
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

    def is_in_memory(self, position: int, length: int) -> bool:
        """Whether reading that would not wait for the disk, as far as can be told without reading it. False where
        nobody can tell."""

    def truncate(self, size: int) -> None: ...

    def write_again(self, position: int) -> None:
        """Write what is there from `position` on once more, in its place, so that the next flush makes it safe.

        After a flush that failed the system may hold bytes that it takes for written: a flush alone would pass over
        them, and report success.
        """

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

    def flush_all(self) -> None:
        """Return when everything written, made or renamed so far survives a power failure. Blocks: keep it rare.

        For many files it is much quicker than a flush of each.
        """

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
    """Threads for work that blocks, first come, first served. Results come back on the loop."""

    def run(self, work: Callable[[], T]) -> Pending[T]: ...


#: What is left of a flush when everything on the disk was flushed since. It is told the fault if that failed, and then
#: raises it as its own. Blocks.
AfterAll = Callable[[FlushFailed | None], None]


class Flusher(Protocol):
    """Group commit: whatever asks for a flush while one is under way shares the next one."""

    def flush(
        self, work: Callable[[], None], client: Hashable = None, after_all: AfterAll | None = None
    ) -> Pending[None]:
        """Run `work` (blocking flushes of files) in the flush thread; done, or failed with its `DiskFault`.

        `client`: whose writes are flushed; clients take turns. `after_all`: what to do instead when many wait, and the
        whole disk is flushed for all of them at once.
        """


class Advertised(msgspec.Struct, frozen=True):
    """Where a broker is found, by the name of the listener."""

    name: str
    host: str
    port: int


class Handshake(msgspec.Struct, frozen=True):
    """What a broker says of itself to another, first of all."""

    broker: BrokerId
    #: Empty: in none yet.
    cluster_id: str
    #: Sixteen bytes: which disk this is.
    directory_id: bytes
    #: Sixteen random bytes: which start of the process this is.
    incarnation: bytes
    is_metadata_empty: bool
    listeners: tuple[Advertised, ...] = ()
    rack: str | None = None
    #: The minor version of the protocol between brokers that it speaks.
    minor_version: int = 0


class Peers(Protocol):
    """Other brokers, as frames of bytes."""

    def send(self, to: BrokerId, frame: Sequence[Buffer]) -> None:
        """Send a frame with its size. What is sent to a broker that cannot be reached is dropped: sessions notice, and
        ask again. Nothing that is sent may change afterwards."""


class PeerListener(Protocol):
    """Who is told what other brokers send. Never from within `Peers.send`."""

    def connected(self, peer: Handshake) -> None:
        """From now on frames come and go."""

    def received(self, sender: BrokerId, frame: memoryview) -> None:
        """A whole frame, without its size. A `ProtocolViolation` ends the connection."""

    def progressed(self, broker: BrokerId) -> None:
        """Part of a large frame has come from there, or gone there. Said now and then."""

    def lost(self, broker: BrokerId) -> None:
        """Whatever was under way in either direction may be lost. Comes once for each `connected`."""


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


class Observer(Protocol):
    """Sees every step of every replica and all that sessions say: for simulators, which check them."""

    def stepped(self, partition: Any, replica: Any, event: Any, effects: Sequence[Any]) -> None: ...

    def said(self, sessions: Any, to: BrokerId, it: Any) -> None:
        """A request or a response of a session is about to be sent."""

    def heard(self, sessions: Any, sender: BrokerId, it: Any) -> None:
        """One has arrived; what it says is about to be delivered."""


def raise_it(error: BaseException) -> None:
    """For worlds in which somebody looks on: tests and simulations."""
    raise error


class World(msgspec.Struct, frozen=True):
    """All ports together, as a broker is handed them."""

    disk: Disk
    clock: Clock
    #: For what somebody waits for and writes nothing: reads of cold data, unpacking.
    workers: Workers
    #: For what flushes, removes or rewrites files, and may take as long as a slow disk likes: no read waits behind it.
    background: Workers
    flusher: Flusher
    randomness: Randomness
    #: Names the time since the machine last started: what was written in it is there, flushed or not. Empty where the
    #: system does not tell.
    boot_id: str
    turns: Turns = msgspec.field(default_factory=EndlessTurn)
    counters: Counters = msgspec.field(default_factory=Counters)
    observer: Observer | None = None
    #: An invariant is broken, and the harm cannot be kept to one replica: ends the process at once, loudly, with
    #: nothing more written. An `AssertionError` that nobody contains ends here by itself.
    fail: Callable[[BaseException], None] = raise_it
