"""Real files below one directory.

A broker may hold many thousands of files and the system allows a process perhaps a thousand open ones, so an open
`File` is a name that borrows a descriptor: the disk keeps the most recently used ones open and closes the rest. A
descriptor that is in use by some thread is never closed under it; whoever uses it last does that.

Reading without waiting is asked of the kernel (`RWF_NOWAIT`, Linux) and where it cannot say, reads simply wait.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from zurau.errors import DiskFault, FlushFailed, UnreadableData
from zurau.node import descriptors
from zurau.node.tree import Tree, has_syncfs
from zurau.ports import Buffer, WouldBlock
from zurau.records.buffers import filled
from zurau.settings import KIB, MIB

#: How much is rewritten at a time.
REWRITE_BYTES = 1 * MIB
#: Between two places at which is asked whether they are in memory. Any value is right; a smaller one sees more.
PROBE_BYTES = 32 * KIB
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
_NOT_SUPPORTED = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}
#: What one `writev` takes.
_CHUNKS_MAX = 1024

_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space or lower retention.bytes",
    errno.EDQUOT: "the disk quota is used up; free some space or raise it",
    errno.EIO: "the disk reports an error; look at the system's log and replace the disk",
    errno.EROFS: "the file system is read-only; it may have been remounted so after an error",
    errno.EACCES: "permission denied; the directory must belong to the user that runs zurau",
    errno.EMFILE: "too many open files; raise the limit with ulimit -n",
    errno.ENFILE: "the system has too many open files; raise fs.file-max",
    errno.ENOENT: "it is gone; something else removed it",
}


class RealDisk:
    """The directory tree below `root`."""

    def __init__(self, root: str | os.PathLike[str], *, open_files_max: int | None = None) -> None:
        self.root = Path(root)
        self._prefix = os.path.join(self.root, "")  # noqa: PTH118 - string paths: this is on every open
        self._open_files_max = open_files_max or descriptors.for_files()
        #: Guards the descriptors of all files; held only for a few instructions.
        self._lock = threading.Lock()
        self._open: OrderedDict[RealFile, None] = OrderedDict()
        self._tree = Tree(self.root) if self.root.is_dir() else None
        #: Two threads may replace the same file; each writes its own.
        self._temporary_numbers = itertools.count()

    def open(self, path: str, *, create: bool = True) -> RealFile:
        with _faults("open", path):
            descriptor = os.open(self._prefix + path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)
            file = RealFile(self, path, os.fstat(descriptor).st_size)
        self._adopt(file, descriptor)
        return file

    def exists(self, path: str) -> bool:
        return os.path.exists(self._prefix + path)  # noqa: PTH110

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(self._prefix + path)  # noqa: PTH112

    def file_size(self, path: str) -> int:
        with _faults("stat", path):
            return os.stat(self._prefix + path).st_size  # noqa: PTH116

    def list_directory(self, path: str) -> list[str]:
        with _faults("list", path):
            try:
                return sorted(os.listdir(self._prefix + path))  # noqa: PTH208
            except (FileNotFoundError, NotADirectoryError):
                return []

    def make_directory(self, path: str) -> None:
        with _faults("make the directory", path):
            os.makedirs(self._prefix + path, exist_ok=True)  # noqa: PTH103

    def rename(self, old: str, new: str) -> None:
        with _faults("rename", old):
            os.rename(self._prefix + old, self._prefix + new)  # noqa: PTH104

    def remove(self, path: str) -> None:
        with _faults("remove", path), suppress(FileNotFoundError):
            os.unlink(self._prefix + path)  # noqa: PTH108

    def remove_tree(self, path: str) -> None:
        with _faults("remove", path), suppress(FileNotFoundError):
            shutil.rmtree(self._prefix + path)

    def read_file(self, path: str) -> bytes | None:
        with _faults("read", path):
            try:
                with open(self._prefix + path, "rb", buffering=0) as file:  # noqa: PTH123 - several at each open of a log
                    return file.readall()
            except FileNotFoundError:
                return None

    def replace_file(self, path: str, content: bytes) -> None:
        temporary = f"{path}.{next(self._temporary_numbers)}.tmp"
        try:
            with _faults("write", temporary), Path(self._prefix + temporary).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            self.rename(temporary, path)
        except DiskFault:
            with suppress(OSError):  # it must not fill a full disk, try by try
                os.unlink(self._prefix + temporary)  # noqa: PTH108
            raise
        self.flush_directory(os.path.dirname(path))  # noqa: PTH120

    def flush_directory(self, path: str) -> None:
        with _faults("flush the directory", path or "."):
            descriptor = os.open(self._prefix + path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with _faults("flush the directory", path or ".", FlushFailed):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @property
    def has_quick_flush_all(self) -> bool:
        """Whether `flush_all` is one call, however many files there are."""
        return has_syncfs()

    def flush_all(self) -> None:
        if self._tree is None:
            self._tree = Tree(self.root)
        with _faults("flush", str(self.root), FlushFailed):
            self._tree.flush()

    def free_bytes(self) -> int:
        with _faults("measure", "."):
            return shutil.disk_usage(self.root).free

    def _borrow(self, file: RealFile) -> int:
        """The file's descriptor, opened if need be, for one use; `_give_back` ends it."""
        while True:
            with self._lock:
                if file.is_closed:
                    raise DiskFault(f"cannot use {file.path}: it was closed")
                if file.descriptor is not None:
                    file.users += 1
                    self._open.move_to_end(file)
                    return file.descriptor
            with _faults("open", file.path):
                descriptor = os.open(self._prefix + file.path, os.O_RDWR | os.O_CLOEXEC)
            self._adopt(file, descriptor)

    def _give_back(self, file: RealFile) -> None:
        with self._lock:
            file.users -= 1
            unwanted = file.descriptor if file.is_closed and file.users == 0 else None
            if unwanted is not None:
                file.descriptor = None
        if unwanted is not None:
            os.close(unwanted)

    def _adopt(self, file: RealFile, descriptor: int) -> None:
        """Keep a fresh descriptor, and close the one that was not used for longest if there are too many."""
        unwanted = None
        with self._lock:
            if file.descriptor is not None or file.is_closed:
                unwanted = descriptor  # another thread was quicker
            else:
                file.descriptor = descriptor
                self._open[file] = None
                if len(self._open) > self._open_files_max:
                    unwanted = self._evict()
        if unwanted is not None:
            os.close(unwanted)

    def _evict(self) -> int | None:
        for file in self._open:
            if file.users == 0:
                del self._open[file]
                descriptor, file.descriptor = file.descriptor, None
                return descriptor
        return None

    def _close(self, file: RealFile) -> None:
        unwanted = None
        with self._lock:
            file.is_closed = True
            self._open.pop(file, None)
            if file.users == 0:
                unwanted, file.descriptor = file.descriptor, None
        if unwanted is not None:
            os.close(unwanted)


class RealFile:
    """One file, by name; its descriptor comes and goes (see above). The fields are the disk's business."""

    __slots__ = ("_disk", "descriptor", "is_closed", "path", "size", "users")

    def __init__(self, disk: RealDisk, path: str, size: int) -> None:
        self._disk = disk
        self.path = path
        self.size = size
        self.descriptor: int | None = None
        self.users = 0
        self.is_closed = False

    def append(self, chunks: Sequence[Buffer]) -> None:
        disk, size = self._disk, self.size
        descriptor = disk._borrow(self)
        try:
            self.size = size + _write_all(descriptor, chunks, size)
        except OSError as error:
            raise _fault("write", self.path, error) from error
        finally:
            disk._give_back(self)

    def read(self, position: int, length: int, *, may_block: bool = True) -> bytes:
        descriptor = self._disk._borrow(self)
        try:
            if may_block or not _NOWAIT:
                return _read_waiting(descriptor, position, length)
            return _read_cached(descriptor, position, length)
        except OSError as error:
            kind = UnreadableData if error.errno == errno.EIO else DiskFault
            raise _fault("read", self.path, error, kind) from error
        finally:
            self._disk._give_back(self)

    def is_in_memory(self, position: int, length: int) -> bool:
        """Asks at some places: what the system reads from a disk at a time is more than what lies between them."""
        if not _NOWAIT:
            return False
        descriptor = self._disk._borrow(self)
        byte = [bytearray(1)]
        try:
            for place in (*range(position, position + length, PROBE_BYTES), position + length - 1):
                os.preadv(descriptor, byte, place, _NOWAIT)
        except OSError:  # not in memory, or nobody can tell; a disk that cannot read says so when it is read
            return False
        finally:
            self._disk._give_back(self)
        return True

    def truncate(self, size: int) -> None:
        descriptor = self._disk._borrow(self)
        try:
            with _faults("truncate", self.path):
                os.ftruncate(descriptor, size)
                self.size = size
        finally:
            self._disk._give_back(self)

    def write_again(self, position: int) -> None:
        descriptor = self._disk._borrow(self)
        try:
            while piece := _read_waiting(descriptor, position, REWRITE_BYTES):
                written = 0
                while written < len(piece):
                    written += os.pwrite(descriptor, piece[written:], position + written)
                position += len(piece)
        except OSError as error:
            raise _fault("write", self.path, error) from error
        finally:
            self._disk._give_back(self)

    def flush(self) -> None:
        # Also right after the descriptor was closed and opened again: what is flushed is the file, and the kernel
        # keeps an error for the next one who asks.
        descriptor = self._disk._borrow(self)
        try:
            with _faults("flush", self.path, FlushFailed):
                _flush_data(descriptor)
        finally:
            self._disk._give_back(self)

    def close(self) -> None:
        self._disk._close(self)


#: macOS has no fdatasync.
_flush_data = getattr(os, "fdatasync", os.fsync)


def _write_all(descriptor: int, chunks: Sequence[Buffer], position: int) -> int:
    """Write all chunks at `position`; when that fails, leave the file as long as it was."""
    try:
        if len(chunks) == 1:
            length = len(chunks[0])
            written = os.pwrite(descriptor, chunks[0], position)
        else:
            length = sum(map(len, chunks))
            written = os.pwritev(descriptor, chunks[:_CHUNKS_MAX], position)
        if written < length:
            # Seldom: a full disk (which the next write will say), a signal, or very many chunks.
            rest = memoryview(b"".join(chunks))
            while written < length:
                written += os.pwrite(descriptor, rest[written:], position + written)
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, position)
        raise
    return length


def _read_waiting(descriptor: int, position: int, length: int) -> bytes:
    data = os.pread(descriptor, length, position)
    while len(data) < length:
        more = os.pread(descriptor, length - len(data), position + len(data))
        if not more:
            break
        data += more
    return data


def _read_cached(descriptor: int, position: int, length: int) -> bytes:
    """What is in memory; raises `WouldBlock` if that is not all. A short read can also be the end of the file."""

    def fill(buffer: memoryview) -> int:
        count = os.preadv(descriptor, [buffer], position, _NOWAIT)
        if count < length and position + count < os.fstat(descriptor).st_size:
            raise WouldBlock
        return count

    try:
        return filled(length, fill)
    except BlockingIOError:
        raise WouldBlock from None
    except OSError as error:
        if error.errno in _NOT_SUPPORTED:
            return _read_waiting(descriptor, position, length)
        raise


@contextmanager
def _faults(action: str, path: str, kind: type[DiskFault] = DiskFault) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _fault(action, path, error, kind) from error


def _fault(action: str, path: str, error: OSError, kind: type[DiskFault] = DiskFault) -> DiskFault:
    """Say what the system refused, of which file, and what to do about it."""
    number = error.errno or 0
    return kind(f"cannot {action} {path}: {_ADVICE.get(number, os.strerror(number))}")
