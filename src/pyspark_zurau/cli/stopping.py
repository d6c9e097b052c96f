"""Ctrl-C and SIGTERM while a pipeline starts and runs.

While it starts nothing is under way that could be spoilt, so the command ends where it stands. Once it runs, it ends
after the batch that it is in; a second signal ends it at once.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Signals:
    def __init__(self) -> None:
        self.received: list[int] = []
        self.is_starting = True

    def __bool__(self) -> bool:
        return bool(self.received)

    @property
    def exit_code(self) -> int:
        return 128 + self.received[0] if self.received else 0

    def listen(self) -> dict[signal.Signals, Any]:
        """Also again, since Spark puts its own in place of ours. Gives what was there."""
        return {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}

    def _note(self, number: int, _frame: FrameType | None) -> None:
        is_second = bool(self.received)
        self.received.append(number)
        if is_second or self.is_starting:
            raise KeyboardInterrupt


@contextmanager
def stopping() -> Iterator[Signals]:
    signals = Signals()
    before = signals.listen()
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
