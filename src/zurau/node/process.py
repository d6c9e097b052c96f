"""A broker as a process of its own, started, watched and stopped by another one."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from zurau.errors import ZurauError

#: How long a broker that was told to stop may take.
STOP_WITHIN_S = 60
#: How often it is looked whether somebody has given up waiting.
LOOK_EVERY_S = 0.2
#: How much of a broker's log is shown when it could not start.
TAIL_CHARACTERS = 4000


class NotStarted(ZurauError, RuntimeError):
    """A broker's process did not become ready."""


class BrokerProcess:
    """`zurau serve` with these settings, in this directory; what it says goes to `log`."""

    def __init__(self, directory: Path, log: Path, settings: Mapping[str, object]) -> None:
        self.directory = directory
        self.log = log
        self._settings = dict(settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: IO[bytes] | None = None
        #: Held open as long as the process shall live: it ends with ours, even if we are killed.
        self._lifeline: int | None = None

    @property
    def pid(self) -> int | None:
        """None while it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs, or when it never did."""
        return self._process.poll() if self._process is not None else None

    def start(self) -> None:
        """Begin; `wait_until_ready` says when it serves."""
        assert self.pid is None, "it is running"
        self._close_pipes()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        ready, ready_write = os.pipe()
        lifeline, self._lifeline = os.pipe()
        command = [sys.executable, "-m", "zurau", "serve", "--dir", str(self.directory)]
        command += ["--ready-fd", str(ready_write), "--lifeline-fd", str(lifeline)]
        for name, value in self._settings.items():
            command += [f"--{name.replace('_', '-')}", _text(value)]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - ourselves, with settings that we made
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[ready_write, lifeline],
                # Ctrl-C is for whoever started it, who then stops it.
                start_new_session=True,
            )
        os.close(ready_write)
        os.close(lifeline)
        self._ready = os.fdopen(ready, "rb", buffering=0)

    def wait_until_ready(self, timeout_s: float, gives_up: Callable[[], bool] = lambda: False) -> str:
        """The line in which it says so, or nothing if `gives_up` says so first. Raises `NotStarted` with the end of its
        log when it does not come."""
        assert self._ready is not None, "it was never started"
        line = b""
        until = time.monotonic() + timeout_s
        while not line.endswith(b"\n"):
            left_s = until - time.monotonic()
            readable, _, _ = select.select([self._ready], [], [], min(LOOK_EVERY_S, max(0.0, left_s)))
            if gives_up():
                return ""
            if not readable and left_s > 0:
                continue
            said = self._ready.read(4096) if readable else b""
            if not said:
                problem = "stopped while starting" if readable else f"was not ready within {timeout_s} s"
                raise NotStarted(f"the broker in {self.directory} {problem}:\n{self.tail()}")
            line += said
        return line.decode()

    def stop(self) -> None:
        """Ask it to stop, and see that it does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """No chance to flush, close or say goodbye."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """It does nothing any more, and its connections stay."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        self._send(signal.SIGCONT)

    def ask_to_stop(self) -> None:
        """Without waiting for it."""
        self._send(signal.SIGTERM)

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-TAIL_CHARACTERS:] if self.log.exists() else ""

    def _send(self, number: signal.Signals) -> None:
        if self.pid is not None and self._process is not None:
            self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        self._send(number)
        self._send(signal.SIGCONT)  # who is paused hears nothing
        if self._process is not None:
            try:
                self._process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        if self._ready is not None:
            with suppress(OSError):
                self._ready.close()
            self._ready = None


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
