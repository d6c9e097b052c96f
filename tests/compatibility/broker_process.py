"""`zurau serve` as a process of its own, as users run it: started, killed, started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

STOP_TIMEOUT_S = 30


class ZurauBroker:
    """A broker in `directory`; it keeps its port over restarts. Leaving the `with` block stops it.

    `open_files`: as many as the system allows it, if the test wants few.
    """

    def __init__(self, directory: Path, *, open_files: int | None = None, **settings: object) -> None:
        self.directory = directory
        self._open_files = open_files
        self.port = self.http_port = 0
        self._settings = {name.replace("_", "-"): str(value) for name, value in settings.items()}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    @property
    def log(self) -> Path:
        return self.directory / "broker.out"

    def start(self) -> None:
        """Return when the broker has said that it is ready."""
        self.directory.mkdir(parents=True, exist_ok=True)
        ready, ready_write = os.pipe()
        command = [sys.executable, "-m", "zurau", "serve", "--dir", str(self.directory / "data")]
        command += ["--kafka", f"127.0.0.1:{self.port}", "--ready-fd", str(ready_write)]
        for name, value in self._settings.items():
            command += [f"--{name}", value]
        if self._open_files is not None:
            command = ["sh", "-c", f'ulimit -n {self._open_files}; exec "$0" "$@"', *command]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=[ready_write]
            )
        os.close(ready_write)
        with os.fdopen(ready) as line:
            said = line.readline()
        assert said, f"the broker stopped while starting:\n{self.log.read_text()[-4000:]}"
        self.port = int(re.search(r"kafka=\S+:(\d+)", said)[1])  # type: ignore[index]
        http = re.search(r"http=\S+:(\d+)", said)
        self.http_port = int(http[1]) if http else 0

    def stop(self) -> None:
        """Ask it to stop, and see that it does."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """No chance to flush, close or say goodbye."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(STOP_TIMEOUT_S)
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
