"""All measurements, one after the other: `make bench`, or `python bench/run.py` for the long form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHES = (
    "cold_start",
    "idle_memory",
    "idle_replicas",
    "fetch_sessions",
    "latency",
    "flush",
    "throughput",
    "connections",
)


def main() -> None:
    for bench in BENCHES:
        command = [sys.executable, str(Path(__file__).parent / f"{bench}.py"), *sys.argv[1:]]
        outcome = subprocess.run(command, check=False)
        if outcome.returncode != 0:
            sys.exit(f"{bench} failed")


if __name__ == "__main__":
    main()
