"""The pipeline of the demo, as anybody would start it: `zurau pipeline run logs`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

STOP_TIMEOUT_S = 60
#: Compiled little and collected simply: what runs for a minute only starts sooner so.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class PipelineProcess:
    """`zurau pipeline run logs`; what it says goes to a file."""

    def __init__(self, directory: Path, bootstrap: str, **parameters: str) -> None:
        self._log = directory / "pipeline.log"
        self._command = [sys.executable, "-m", "zurau", "pipeline", "run", "logs", "--create-topics"]
        self._command += ["--bootstrap", bootstrap]
        self._command += [word for name, value in parameters.items() for word in ("--set", f"{name}={value}")]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                self._command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | {"JAVA_TOOL_OPTIONS": JAVA_OPTIONS},
            )

    def check(self) -> None:
        """Ends the demo when the pipeline has ended by itself: it never should."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise SystemExit(f"the pipeline ended:\n{self._log.read_text()[-3000:]}")

    def stop(self) -> None:
        """In good order: each query after the batch it is in."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
