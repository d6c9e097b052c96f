"""`zurau pipeline run` as a process with all that it starts, to be killed with -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 240
#: For the `[spark]` of a pipeline that runs for seconds: a small Java that starts sooner.
SMALL_JAVA = """
"driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"driver.memory" = "800m"
"ui.enabled" = false
"sql.shuffle.partitions" = 1
"""
#: What Spark says when a Python process takes longer than ten seconds to start, which is all that it gives it.
TOO_BUSY = "Python worker failed to connect back"


class Overloaded(Exception):
    """The driver has ended because the machine was too busy."""


class Driver:
    """In a process group of its own."""

    def __init__(self, file: Path, bootstrap: str, *options: str) -> None:
        self._log = file.with_suffix(".log")
        command = [sys.executable, "-m", "zurau", "pipeline", "run", str(file), "--quiet", "--bootstrap", bootstrap]
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [*command, *options], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    def check_alive(self) -> None:
        if self._process.poll() is not None:
            said = self._log.read_text()[-4000:]
            assert TOO_BUSY in said, f"it has ended by itself:\n{said}"
            raise Overloaded(said)

    def kill(self) -> None:
        self.check_alive()
        self.end()

    def end(self) -> None:
        """Also if it has ended by itself."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def finish(self) -> None:
        if self._process.wait(PATIENCE_S) != 0:
            self.check_alive()


def insist(attempt: Callable[[], None]) -> None:
    """Again, if the machine was too busy for Spark; to end like that is as good as being killed."""
    for _ in range(5):
        try:
            return attempt()
        except Overloaded:
            continue
    return attempt()
