"""Ends that come from outside.

SIGTERM is an exception on its way out, as Ctrl-C is, so that whatever is open gets closed: a member commits and leaves
its group. The exit code is that of a process that the signal itself had ended.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

TERMINATED = 128 + signal.SIGTERM


@contextmanager
def sigterm_unwinds() -> Iterator[None]:
    """Within the block SIGTERM ends the process in good order; `timeout`, systemd and Docker send it."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    # A second one shall not disturb the good order.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(TERMINATED)
