"""Ends that come from outside: SIGTERM, a reader that closed the pipe, and streams that are full or were never there.

The first two are exceptions on their way out, as Ctrl-C is, so that whatever is open gets closed: a member commits and
leaves its group. The exit codes are those of a process that the signal itself had ended.

A command whose result cannot be written has failed, and says so. One whose remarks on stderr cannot be written has
not: there is nobody to tell.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from zurau.errors import ZurauError

TERMINATED = 128 + signal.SIGTERM
PIPE_CLOSED = 128 + signal.SIGPIPE
#: A stream that nothing refers to any more closes its descriptor.
_replaced: list[io.TextIOWrapper] = []


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
        _end_quietly()


def exit_code_of(command: Callable[[], int | None]) -> int:
    """Run a command to its end, see that its result is written, and return the code with which to exit."""
    hold_streams()
    try:
        with closed_pipe_is_no_error():
            code = _ended(command)
    except SystemExit as end:
        return _as_code(end.code)
    except NotWritten as error:
        _drop_output()
        sys.stderr.write(f"zurau: {error}\n")
        return 1
    return code


class NotWritten(ZurauError):
    """The result of a command cannot be written."""

    def __init__(self, error: OSError) -> None:
        reason = "it is closed" if error.errno == errno.EBADF else error.strerror
        super().__init__(f"cannot write the result to stdout: {reason}; send it somewhere else")


def hold_streams() -> None:
    """Have all three streams, whatever we were started with.

    A closed descriptor would be given to the next file or socket, and what is meant for stdout would go there. So its
    place is taken, the wrong way round: reading a closed stdin and writing to a closed stdout fail.
    """
    flags = {"stdin": os.O_WRONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
    for number, (name, flag) in enumerate(flags.items()):
        if getattr(sys, name) is None:
            _take_place(number, flag)
            # Opened like the real ones: for as long as the process lives.
            stream = open(number, "r" if name == "stdin" else "w", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _rewrapped(sys.stdout, Results)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _rewrapped(sys.stderr, Remarks)


def results_are_remarks() -> None:
    """For a broker: it goes on whether or not anybody reads that it is ready."""
    if isinstance(sys.stdout, Results):
        assert sys.__stdout__ is not None
        _replaced.append(sys.stdout)
        sys.stdout = _rewrapped(sys.__stdout__, Remarks)


class Results(io.TextIOWrapper):
    """Stdout: what cannot be written is told from any other fault of the system."""

    def write(self, text: str) -> int:
        with _faults_of_stdout():
            return super().write(text)

    def flush(self) -> None:
        with _faults_of_stdout():
            super().flush()


class Remarks(io.TextIOWrapper):
    """Stderr: what cannot be written is let go."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


@contextmanager
def _faults_of_stdout() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        _end_quietly()
    except OSError as error:
        raise NotWritten(error) from error


def _rewrapped(stream: Any, kind: type[io.TextIOWrapper]) -> io.TextIOWrapper:
    return kind(
        stream.buffer,
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _ended(command: Callable[[], int | None]) -> int:
    try:
        return command() or 0
    except SystemExit as end:
        return _as_code(end.code)


def _as_code(code: object) -> int:
    return code if isinstance(code, int) else int(code is not None)


def _take_place(number: int, flags: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        descriptor = os.open(os.devnull, flags)
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)


def _end_quietly() -> NoReturn:
    _drop_output()
    sys.exit(PIPE_CLOSED)


def _drop_output() -> None:
    """What is still buffered goes nowhere; otherwise Python complains about it at the very end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    # A second one shall not disturb the good order.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(TERMINATED)
