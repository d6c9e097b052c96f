"""A disk that is invented: in memory, from a seed, with the faults of real ones on demand.

What a program sees and what would survive a power failure are kept apart. A file's bytes become safe when the file is
flushed; that it exists, is renamed or removed becomes safe when its directory is flushed. A crash keeps, of what is
not safe, an arbitrary beginning: of each file's appended bytes (torn at any byte, at times with zeroes where the rest
was to be) and of each directory's changes, which file systems keep in order.

Faults to ask for: no room (`capacity_bytes`), flushes that fail (`fail_flushes`), flipped bits (`flip_bit`), bytes
that are not in memory (`forget_cached`), and power that fails after so many operations (`fail_power_after`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zurau.errors import DiskFault, FlushFailed
from zurau.ports import Buffer, WouldBlock

_UNLIMITED = 1 << 62


@dataclass(eq=False, slots=True)
class _Content:
    """The bytes of a file, as seen and as safe. Names point at it."""

    seen: bytearray = field(default_factory=bytearray)
    safe: bytes = b""
    #: Since the last flush the file was never shorter than this, so so much of `safe` is still in place.
    unchanged_bytes: int = 0
    is_cached: bool = True

    def flush(self) -> None:
        self.safe = bytes(self.seen)
        self.unchanged_bytes = len(self.seen)

    def crash(self, chance: random.Random) -> None:
        """Keep what is safe and an arbitrary beginning of what came after."""
        if bytes(self.seen) == self.safe:
            return
        if self.unchanged_bytes < len(self.safe) and chance.random() < 0.5:
            survived = bytearray(self.safe)  # the file was cut shorter, but that never got to the disk
        else:
            # Nothing is the most likely beginning: file systems write appended bytes out late, and all together.
            kept = chance.choice([self.unchanged_bytes, chance.randint(self.unchanged_bytes, len(self.seen))])
            survived = self.seen[:kept]
            if chance.random() < 0.25:
                survived += bytes(chance.randint(0, len(self.seen) - kept))
        self.seen = survived
        self.flush()


_Names = dict[str, _Content]
_Change = Callable[[_Names], None]


class SimulatedDisk:
    """A directory tree that can crash. Not for threads."""

    def __init__(self, seed: int = 0, *, capacity_bytes: int = _UNLIMITED) -> None:
        self.root = Path("/simulated")
        self.capacity_bytes = capacity_bytes
        #: While True, flushes of files fail.
        self.fail_flushes = False
        self.flush_count = 0
        #: How many changes of any kind were asked for.
        self.operation_count = 0
        self._power_fails_at: int | None = None
        self._chance = random.Random(seed)
        self._seen: _Names = {}
        self._safe: _Names = {}
        #: For each directory, what was done to its names since it was last flushed, in order.
        self._changes: dict[str, list[_Change]] = {}
        self._crash_count = 0

    # The port

    def open(self, path: str, *, create: bool = True) -> SimulatedFile:
        content = self._seen.get(path)
        if content is None:
            if not create:
                raise DiskFault(f"cannot open {path}: it is gone")
            self._require_directory(path)
            fresh = _Content()
            self._change(path, lambda names: names.update({path: fresh}))
            content = fresh
        return SimulatedFile(self, path, content)

    def exists(self, path: str) -> bool:
        return path in self._seen or _marker(path) in self._seen

    def is_directory(self, path: str) -> bool:
        return _marker(path) in self._seen

    def file_size(self, path: str) -> int:
        return len(self._content(path).seen)

    def list_directory(self, path: str) -> list[str]:
        inside = f"{path}/" if path else ""
        names = {name[len(inside) :].partition("/")[0] for name in self._seen if name.startswith(inside)}
        return sorted(names - {""})

    def make_directory(self, path: str) -> None:
        self._operate()
        # Directories are safe at once: that one is lost with all that is in it teaches nothing that files do not.
        parts = path.split("/")
        for count in range(len(parts)):
            marker = _marker("/".join(parts[: count + 1]))
            if marker not in self._seen:
                self._seen[marker] = self._safe[marker] = _Content()

    def rename(self, old: str, new: str) -> None:
        self._require_directory(new)
        if _marker(old) in self._seen:
            self._rename_directory(old, new)
            return
        self._content(old)

        def change(names: _Names) -> None:
            if old in names:
                names[new] = names.pop(old)

        self._change(old, change)

    def _rename_directory(self, old: str, new: str) -> None:
        """Should a crash undo it, then names in the directory that were not safe before are gone too."""
        if any(name.startswith(_marker(new)) and name != _marker(new) for name in self._seen):
            raise DiskFault(f"cannot rename {old}: {new} is not empty")
        inner = self._changes.pop(old, [])

        def change(names: _Names) -> None:
            if names is self._safe:
                for one in inner:
                    one(names)
            for name in [name for name in names if name.startswith(_marker(old))]:
                names[new + name[len(old) :]] = names.pop(name)

        self._change(old, change)

    def remove(self, path: str) -> None:
        if path in self._seen:

            def change(names: _Names) -> None:
                names.pop(path, None)

            self._change(path, change)

    def remove_tree(self, path: str) -> None:
        self._operate()
        for names in (self._seen, self._safe):
            for name in [name for name in names if name.startswith(_marker(path))]:
                del names[name]
        self._changes = {
            name: changes for name, changes in self._changes.items() if not _marker(name).startswith(_marker(path))
        }

    def read_file(self, path: str) -> bytes | None:
        content = self._seen.get(path)
        return bytes(content.seen) if content is not None else None

    def replace_file(self, path: str, content: bytes) -> None:
        temporary = path + ".tmp"
        self.remove(temporary)
        file = self.open(temporary)
        try:
            file.append([content])
            file.flush()
        except FlushFailed as fault:
            raise DiskFault(str(fault)) from fault  # the old content is as safe as before
        self.rename(temporary, path)
        self.flush_directory(_parent(path))

    def flush_directory(self, path: str) -> None:
        self._operate()
        for change in self._changes.pop(path, ()):
            change(self._safe)

    def free_bytes(self) -> int:
        return self.capacity_bytes - self.used_bytes

    # Faults, and looking behind the scenes

    @property
    def boot_id(self) -> str:
        """Another one after each power failure."""
        return f"boot-{self._crash_count}"

    @property
    def used_bytes(self) -> int:
        return sum(len(content.seen) for content in self._seen.values())

    def crash(self) -> None:
        """The power goes and comes back. Files that were open are not any more."""
        for changes in self._changes.values():
            for change in changes[: self._chance.randint(0, len(changes))]:
                change(self._safe)
        self._changes = {}
        self._seen = dict(self._safe)
        for content in self._seen.values():
            content.crash(self._chance)
        self._crash_count += 1
        self.fail_flushes = False
        self._power_fails_at = None

    @property
    def has_power(self) -> bool:
        return self._power_fails_at is None or self.operation_count <= self._power_fails_at

    def fail_power_after(self, operations: int) -> None:
        """So many changes still happen; the next one and all that follow fail, until `crash`."""
        self._power_fails_at = self.operation_count + operations

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """Damage a file, as seen and as safe."""
        content = self._content(path)
        content.seen[position] ^= 1 << bit
        safe = bytearray(content.safe)
        safe[position : position + 1] = content.seen[position : position + 1]
        content.safe = bytes(safe)

    def forget_cached(self) -> None:
        """Everything has to come from the disk now: reads that may not block raise `WouldBlock`."""
        for content in self._seen.values():
            content.is_cached = False

    def _operate(self) -> None:
        self.operation_count += 1
        if not self.has_power:
            raise DiskFault("the power has failed")

    def _change(self, path: str, change: _Change) -> None:
        self._operate()
        change(self._seen)
        self._changes.setdefault(_parent(path), []).append(change)

    def _content(self, path: str) -> _Content:
        try:
            return self._seen[path]
        except KeyError:
            raise DiskFault(f"cannot find {path}: it is gone") from None

    def _require_directory(self, path: str) -> None:
        if "/" in path and _marker(_parent(path)) not in self._seen:
            raise DiskFault(f"cannot open {path}: there is no such directory")


class SimulatedFile:
    """An open file of a `SimulatedDisk`, until that crashes."""

    def __init__(self, disk: SimulatedDisk, path: str, content: _Content) -> None:
        self._disk = disk
        self._content = content
        self._crash_count = disk._crash_count
        self._is_closed = False
        self.path = path

    @property
    def size(self) -> int:
        return len(self._content.seen)

    def append(self, chunks: Sequence[Buffer]) -> None:
        self._require_open()
        self._disk._operate()
        data = b"".join(chunks)
        if len(data) > self._disk.free_bytes():
            raise DiskFault(f"cannot write {self.path}: the disk is full")
        self._content.seen += data

    def read(self, position: int, length: int, *, may_block: bool = True) -> bytes:
        self._require_open()
        if not may_block and not self._content.is_cached:
            raise WouldBlock
        self._content.is_cached = True
        return bytes(self._content.seen[position : position + length])

    def truncate(self, size: int) -> None:
        self._require_open()
        self._disk._operate()
        del self._content.seen[size:]
        self._content.seen += bytes(size - len(self._content.seen))
        self._content.unchanged_bytes = min(self._content.unchanged_bytes, size)

    def flush(self) -> None:
        self._require_open()
        self._disk._operate()
        self._disk.flush_count += 1
        if self._disk.fail_flushes:
            raise FlushFailed(f"cannot flush {self.path}: the disk reports an error")
        self._content.flush()

    def close(self) -> None:
        self._is_closed = True

    def _require_open(self) -> None:
        if self._is_closed or self._crash_count != self._disk._crash_count:
            raise DiskFault(f"cannot use {self.path}: it was closed")


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _marker(directory: str) -> str:
    """The name, among those of files, that says that there is such a directory."""
    return f"{directory}/"
