"""The real clock."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from zurau.node.turns import LoopTurns
from zurau.ports import Timer

BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")


class SystemClock:
    """Time as the operating system tells it, and timers of the running event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turns: LoopTurns) -> None:
        self._loop = loop
        self._turns = turns

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000  # uvloop's own clock stands still during a step

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, self._fire, callback)

    def _fire(self, callback: Callable[[], None]) -> None:
        self._turns.begin()
        callback()
        self._turns.end(callback)


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
