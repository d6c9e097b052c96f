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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from zurau.errors import DiskFault, FlushFailed, UnreadableData
from zurau.ports import Buffer, WouldBlock
from zurau.simulation.file_content import Content, FlushUnderWay

UNLIMITED = 1 << 62


#: Directories by path, each with its files by name. The root is the directory "".
_Tree = dict[str, dict[str, Content]]
_Change = Callable[[_Tree], None]


class FlushOfAll(NamedTuple):
    """What a flush of everything that has begun will make safe."""

    contents: list[tuple[Content, FlushUnderWay]]
    #: By directory, how many of its changes.
    names: dict[str, int]


class SimulatedDisk:
    """A directory tree that can crash. Not for threads that really run at once."""

    def __init__(self, seed: int = 0, *, capacity_bytes: int = UNLIMITED) -> None:
        self.root = Path("/simulated")
        self.capacity_bytes = capacity_bytes
        #: While True, flushes of files fail.
        self.fail_flushes = False
        self.flush_count = 0
        #: How many changes of any kind were asked for.
        self.operation_count = 0
        self._power_fails_at: int | None = None
        self._chance = random.Random(seed)
        self._seen: _Tree = {"": {}}
        self._safe: _Tree = {"": {}}
        #: For each directory, what was done to its names since it was last flushed, in order.
        self._changes: dict[str, list[_Change]] = {}
        self._crash_count = 0
        #: None: some name has changed since it was counted.
        self._used_bytes: int | None = 0
        self._is_looked_into = False

    # The port

    def open(self, path: str, *, create: bool = True) -> SimulatedFile:
        content = self._find(path)
        if content is None:
            if not create:
                raise DiskFault(f"cannot open {path}: it is gone")
            self._require_directory(path)
            directory, name = _split(path)
            fresh = Content()
            self._change(directory, lambda tree: _put(tree, directory, name, fresh))
            content = fresh
        return SimulatedFile(self, path, content)

    def exists(self, path: str) -> bool:
        return path in self._seen or self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return path in self._seen

    def file_size(self, path: str) -> int:
        return len(self._content(path).seen)

    def list_directory(self, path: str) -> list[str]:
        names = set(self._seen.get(path, ()))
        inside = f"{path}/" if path else ""
        names.update(name[len(inside) :].partition("/")[0] for name in self._seen if name.startswith(inside))
        return sorted(names - {""})

    def make_directory(self, path: str) -> None:
        self._operate()
        # Directories are safe at once: that one is lost with all that is in it teaches nothing that files do not.
        parts = path.split("/")
        for count in range(len(parts)):
            directory = "/".join(parts[: count + 1])
            if directory not in self._seen:
                # And what was done to names beside it before, such as a rename of one with this name.
                for change in self._changes.pop(_split(directory)[0], ()):
                    change(self._safe)
                self._seen[directory], self._safe[directory] = {}, {}

    def rename(self, old: str, new: str) -> None:
        self._require_directory(new)
        if old in self._seen:
            self._rename_directory(old, new)
            return
        self._content(old)
        (old_directory, old_name), (new_directory, new_name) = _split(old), _split(new)

        def change(tree: _Tree) -> None:
            content = tree.get(old_directory, {}).pop(old_name, None)
            if content is not None:
                _put(tree, new_directory, new_name, content)

        self._change(old_directory, change)

    def _rename_directory(self, old: str, new: str) -> None:
        """Should a crash undo it, then names in the directory that were not safe before are gone too."""
        if any(self._seen[directory] or directory != new for directory in _within(self._seen, new)):
            raise DiskFault(f"cannot rename {old}: {new} is not empty")
        inner = self._changes.pop(old, [])

        def change(tree: _Tree) -> None:
            if tree is self._safe:
                for one in inner:
                    one(tree)
            for directory in _within(tree, old):
                tree[new + directory[len(old) :]] = tree.pop(directory)

        self._change(_split(old)[0], change)

    def remove(self, path: str) -> None:
        if self._find(path) is not None:
            directory, name = _split(path)
            self._change(directory, lambda tree: _take(tree, directory, name))

    def remove_tree(self, path: str) -> None:
        self._operate()
        for tree in (self._seen, self._safe):
            for directory in _within(tree, path):
                del tree[directory]
        for directory in _within(self._changes, path):
            del self._changes[directory]
        self._used_bytes = None

    def read_file(self, path: str) -> bytes | None:
        content = self._find(path)
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
        self.flush_directory(_split(path)[0])

    def flush_directory(self, path: str, count: int | None = None) -> None:
        """`count`: only the first so many changes, those that were there when a flush began that takes its time."""
        self._operate()
        changes = self._changes.get(path, [])
        for change in changes[:count]:
            change(self._safe)
        del changes[:count]

    def begin_flush_all(self) -> FlushOfAll:
        """For one that takes its time: what is written meanwhile need not be safe after it."""
        contents = [content for files in self._seen.values() for content in files.values()]
        names = {path: len(changes) for path, changes in self._changes.items()}
        return FlushOfAll([(content, content.begin_flush()) for content in contents], names)

    def flush_all(self, begun: FlushOfAll | None = None) -> None:
        self._operate()
        self.flush_count += 1
        begun = begun or self.begin_flush_all()
        for content, flush in begun.contents:
            if self.fail_flushes:
                content.flush_failed()
            else:
                content.flush(flush)
        if self.fail_flushes:
            raise FlushFailed("cannot flush: the disk reports an error")
        for path, count in begun.names.items():
            self.flush_directory(path, count)

    def free_bytes(self) -> int:
        return self.capacity_bytes - self.used_bytes if self.capacity_bytes < UNLIMITED else UNLIMITED

    # Faults, and looking behind the scenes

    @property
    def boot_id(self) -> str:
        """Another one after each power failure."""
        return f"boot-{self._crash_count}"

    @property
    def used_bytes(self) -> int:
        if self._used_bytes is None:
            self._used_bytes = sum(len(file.seen) for directory in self._seen.values() for file in directory.values())
        return self._used_bytes

    def unflushed_names(self, path: str) -> int:
        """How many changes of names in a directory are not safe."""
        return len(self._changes.get(path, ()))

    def crash(self) -> None:
        """The power goes and comes back. Files that were open are not any more."""
        for changes in self._changes.values():
            for change in changes[: self._chance.randint(0, len(changes))]:
                change(self._safe)
        self._changes = {}
        self._seen = {directory: dict(files) for directory, files in self._safe.items()}
        for files in self._seen.values():
            for content in files.values():
                content.crash(self._chance)
        self._crash_count += 1
        self._used_bytes = None
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
        if content.before_cut is not None and position < len(content.before_cut):
            before = bytearray(content.before_cut)
            before[position] ^= 1 << bit
            content.before_cut = bytes(before)

    def change_bit(self, path: str, position: int, bit: int) -> None:
        """As `flip_bit`, of a byte that is not in memory: it shows when it is read from the disk."""
        self.flip_bit(path, position, bit)
        self._content(path).changed.append(position)

    def safe_bytes(self, path: str) -> int:
        """How much of a file would survive a power failure; 0 if there is none."""
        content = self._find(path)
        return content.safe_bytes if content is not None else 0

    def make_unreadable(self, path: str, places: range) -> None:
        """From now on reads of these bytes fail."""
        self._content(path).unreadable = places

    def forget_cached(self) -> None:
        """Everything has to come from the disk now: reads that may not block raise `WouldBlock`."""
        for files in self._seen.values():
            for content in files.values():
                content.is_cached = False

    @contextmanager
    def looked_into(self) -> Iterator[None]:
        """Whoever reads meanwhile leaves no trace of it."""
        self._is_looked_into = True
        try:
            yield
        finally:
            self._is_looked_into = False

    def _operate(self) -> None:
        self.operation_count += 1
        if not self.has_power:
            raise DiskFault("the power has failed")

    def _change(self, directory: str, change: _Change) -> None:
        self._operate()
        change(self._seen)
        self._used_bytes = None
        self._changes.setdefault(directory, []).append(change)

    def _find(self, path: str) -> Content | None:
        directory, name = _split(path)
        return self._seen.get(directory, {}).get(name)

    def _content(self, path: str) -> Content:
        content = self._find(path)
        if content is None:
            raise DiskFault(f"cannot find {path}: it is gone")
        return content

    def _require_directory(self, path: str) -> None:
        if _split(path)[0] not in self._seen:
            raise DiskFault(f"cannot open {path}: there is no such directory")


class SimulatedFile:
    """An open file of a `SimulatedDisk`, until that crashes."""

    def __init__(self, disk: SimulatedDisk, path: str, content: Content) -> None:
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
        if self._disk._used_bytes is not None:
            self._disk._used_bytes += len(data)

    def read(self, position: int, length: int, *, may_block: bool = True) -> bytes:
        self._require_open()
        if not may_block and not self._content.is_in_memory(position, length):
            raise WouldBlock
        if not self._disk._is_looked_into:
            self._content.is_cached = True
        if range(max(position, self._content.unreadable.start), min(position + length, self._content.unreadable.stop)):
            raise UnreadableData(f"cannot read {self.path}: the disk reports an error")
        return bytes(memoryview(self._content.seen)[position : position + length])

    def is_in_memory(self, position: int, length: int) -> bool:
        return self._content.is_in_memory(position, length)

    def truncate(self, size: int) -> None:
        self._require_open()
        self._disk._operate()
        self._content.truncate(size)
        self._disk._used_bytes = None

    def write_again(self, position: int) -> None:
        self._require_open()
        self._disk._operate()
        self._content.write_again(position)

    def begin_flush(self) -> FlushUnderWay:
        """For a flush that takes its time: what is appended from here on need not be safe when it is done."""
        return self._content.begin_flush()

    def flush(self, begun: FlushUnderWay | None = None) -> None:
        self._require_open()
        self._disk._operate()
        self._disk.flush_count += 1
        if self._disk.fail_flushes:
            self._content.flush_failed()
            raise FlushFailed(f"cannot flush {self.path}: the disk reports an error")
        self._content.flush(begun)

    def close(self) -> None:
        self._is_closed = True

    def _require_open(self) -> None:
        if self._is_closed or self._crash_count != self._disk._crash_count:
            raise DiskFault(f"cannot use {self.path}: it was closed")


def _split(path: str) -> tuple[str, str]:
    directory, _, name = path.rpartition("/")
    return directory, name


def _put(tree: _Tree, directory: str, name: str, content: Content) -> None:
    tree.setdefault(directory, {})[name] = content


def _take(tree: _Tree, directory: str, name: str) -> None:
    tree.get(directory, {}).pop(name, None)


def _within(directories: dict[str, object] | _Tree | dict[str, list[_Change]], path: str) -> list[str]:
    """A directory, if it is there, and those below it."""
    return [directory for directory in directories if directory == path or directory.startswith(f"{path}/")]
