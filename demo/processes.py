"""The two programs of the demo, as anybody would start them: `zurau serve` and `zurau pipeline run logs`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

PARTITIONS = 2
STOP_TIMEOUT_S = 60
#: Compiled little and collected simply: what runs for a minute only starts sooner so.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class BrokerProcess:
    """`zurau serve`, started, killed and started again on the same directory and port."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> float:
        """Returns the seconds from nothing to ready."""
        began_s = time.perf_counter()
        ready, told = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "zurau", "serve", "--dir", str(self._directory), "--kafka", self.bootstrap,
             "--num-partitions", str(PARTITIONS), "--ready-fd", str(told), "--log-level", "error"],
            pass_fds=[told], stdout=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(told)
        with os.fdopen(ready) as pipe:
            line = pipe.readline()
        if not line:
            raise SystemExit("the broker did not start; run `zurau serve` to see why")
        self._port = int(line.split("kafka=")[1].split()[0].rpartition(":")[2])
        return time.perf_counter() - began_s

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOP_TIMEOUT_S)


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
