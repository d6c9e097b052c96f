"""Ends that come from outside: SIGTERM, and a reader that closed the pipe.

Both are exceptions on their way out, as Ctrl-C is, so that whatever is open gets closed: a member commits and leaves
its group. The exit codes are those of a process that the signal itself had ended.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

TERMINATED = 128 + signal.SIGTERM
PIPE_CLOSED = 128 + signal.SIGPIPE


@contextmanager
def sigterm_unwinds() -> Iterator[None]:
    """Within the block SIGTERM ends the process in good order; `timeout`, systemd and Docker send it."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def closed_pipe_is_no_error() -> Iterator[None]:
    """Whoever read our output has seen enough (`| head`): end without a word."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered goes nowhere; otherwise Python complains about it at the very end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise typer.Exit(PIPE_CLOSED) from None


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    # A second one shall not disturb the good order.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(TERMINATED)
