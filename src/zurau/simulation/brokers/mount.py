"""A node's disk as one process sees it: every operation passes a gate, which may hold it, or end the process there.

What a real disk does in several steps is done in as many here, so that power can fail between any two of them. A flush
takes time: what is appended meanwhile is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from zurau.errors import DiskFault, FlushFailed
from zurau.ports import Buffer
from zurau.simulation.disk import SimulatedDisk, SimulatedFile


class Gate(Protocol):
    def read(self) -> None:
        """Something is about to be read."""

    def change(self, what: str) -> None:
        """Something is about to be changed."""

    def flush(self, what: str) -> None:
        """Something is being flushed: returns when that is done."""


class MountedDisk:
    """The port `Disk`."""

    def __init__(self, disk: SimulatedDisk, gate: Gate) -> None:
        self._disk = disk
        self._gate = gate
        self.root = disk.root
        self._temporary_count = 0

    def open(self, path: str, *, create: bool = True) -> MountedFile:
        if create and not self._disk.exists(path):
            self._gate.change(f"create {path}")
        return MountedFile(self._disk.open(path, create=create), self._gate)

    def exists(self, path: str) -> bool:
        return self._disk.exists(path)

    def is_directory(self, path: str) -> bool:
        return self._disk.is_directory(path)

    def file_size(self, path: str) -> int:
        return self._disk.file_size(path)

    def list_directory(self, path: str) -> list[str]:
        self._gate.read()
        return self._disk.list_directory(path)

    def make_directory(self, path: str) -> None:
        self._gate.change(f"make directory {path}")
        self._disk.make_directory(path)

    def rename(self, old: str, new: str) -> None:
        self._gate.change(f"rename {old} to {new}")
        self._disk.rename(old, new)

    def remove(self, path: str) -> None:
        if self._disk.exists(path):
            self._gate.change(f"remove {path}")
            self._disk.remove(path)

    def remove_tree(self, path: str) -> None:
        for name in self._disk.list_directory(path):
            below = f"{path}/{name}"
            if self._disk.is_directory(below):
                self.remove_tree(below)
            else:
                self.remove(below)
        self._gate.change(f"remove directory {path}")
        self._disk.remove_tree(path)

    def read_file(self, path: str) -> bytes | None:
        self._gate.read()
        return self._disk.read_file(path)

    def replace_file(self, path: str, content: bytes) -> None:
        self._temporary_count += 1
        temporary = f"{path}.{self._temporary_count}.tmp"  # several threads may be at it
        self.remove(temporary)  # of a process that was killed
        file = self.open(temporary)
        try:
            file.append([content])
            file.flush()
            self.rename(temporary, path)
        except DiskFault as fault:
            self.remove(temporary)
            if isinstance(fault, FlushFailed):
                raise DiskFault(str(fault)) from fault  # the old content is as safe as before
            raise
        self.flush_directory(path.rpartition("/")[0])

    def flush_directory(self, path: str) -> None:
        count = self._disk.unflushed_names(path)
        self._gate.flush(f"flush directory {path}")
        self._disk.flush_directory(path, min(count, self._disk.unflushed_names(path)))

    def flush_all(self) -> None:
        begun = self._disk.begin_flush_all()
        self._gate.flush("flush everything")
        self._disk.flush_all(begun)

    def free_bytes(self) -> int:
        return self._disk.free_bytes()


class MountedFile:
    """The port `File`."""

    def __init__(self, file: SimulatedFile, gate: Gate) -> None:
        self._file = file
        self._gate = gate

    @property
    def size(self) -> int:
        return self._file.size

    def append(self, chunks: Sequence[Buffer]) -> None:
        self._gate.change(f"append to {self._file.path}")
        self._file.append(chunks)

    def read(self, position: int, length: int, *, may_block: bool = True) -> bytes:
        self._gate.read()
        return self._file.read(position, length, may_block=may_block)

    def is_in_memory(self, position: int, length: int) -> bool:
        return self._file.is_in_memory(position, length)

    def truncate(self, size: int) -> None:
        self._gate.change(f"truncate {self._file.path}")
        self._file.truncate(size)

    def write_again(self, position: int) -> None:
        self._gate.change(f"write {self._file.path} again")
        self._file.write_again(position)

    def flush(self) -> None:
        begun = self._file.begin_flush()
        self._gate.flush(f"flush {self._file.path}")
        self._file.flush(begun)

    def close(self) -> None:
        self._file.close()
