"""Keeps glibc from giving memory back between two fetches.

A fetch of a megabyte takes a buffer and frees it a moment later. Past a threshold glibc maps fresh pages for each
such buffer and unmaps them again, and the kernel clears every page every time: two thirds of what a busy consumer
cost the broker went there, and most of what unpacking costs a reader. With these thresholds the same pages are used
again, for a few megabytes of memory.
"""

from __future__ import annotations

from zurau.settings import MIB

#: Names and meanings as in mallopt(3).
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


def keep_freed_memory() -> None:
    """For the whole process. Does nothing where the C library is another one."""
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 8 * MIB)
        mallopt(_TRIM_THRESHOLD, 16 * MIB)
