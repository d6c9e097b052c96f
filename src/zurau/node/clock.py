"""The real clock."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from zurau.ports import Timer

BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")


class SystemClock:
    """Time as the operating system and the running event loop tell it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return self._loop.time() * 1000

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, callback)


class SystemRandomness:
    """Randomness that nobody can foresee: topic ids and member ids must not collide or be guessed."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


def read_boot_id() -> str:
    """Which start of the machine this is, by Linux's name for it; empty where there is none."""
    try:
        return BOOT_ID_FILE.read_text().strip()
    except OSError:
        return ""
