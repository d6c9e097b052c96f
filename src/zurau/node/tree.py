"""Flushing all files below a directory at once.

Linux can flush a whole file system with one call, `syncfs`, and since 5.8 says when that failed. Elsewhere every file
and directory is flushed, some side by side, so that the file system can write them together.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FLUSHED_AT_ONCE = 16
_SYNCFS_SINCE = (5, 8)


class Tree:
    """What is below `root`. Errors are told that came up since this was made, so make it early."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._descriptor = os.open(root, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        os.close(self._descriptor)

    def flush(self) -> None:
        """Raises `OSError`."""
        if not has_syncfs():
            self.flush_each()
        elif ctypes.CDLL(None, use_errno=True).syncfs(self._descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def flush_each(self) -> None:
        """Raises `OSError`."""
        with ThreadPoolExecutor(FLUSHED_AT_ONCE, thread_name_prefix="flush-all") as threads:
            for flushed in threads.map(_flush, self._paths()):
                assert flushed is None, "or else it has raised"

    def _paths(self) -> Iterator[str]:
        """Files first, then the directories that name them."""
        for directory, _, names in os.walk(self._root, topdown=False):
            for name in names:
                yield f"{directory}/{name}"
            yield directory


def has_syncfs() -> bool:
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    is_new = version is not None and (int(version[1]), int(version[2])) >= _SYNCFS_SINCE
    return platform.system() == "Linux" and is_new and hasattr(ctypes.CDLL(None), "syncfs")


def _flush(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
