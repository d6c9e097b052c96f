"""What a broker holds in memory when nothing happens: `python bench/idle_memory.py`."""

from __future__ import annotations

import argparse
import time

import subjects
from measure import cpu_s, ratio, resident_bytes, show
from raw_clients import connect

BUDGET_MB = 60
MB = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="idle for 2 s instead of 20, and no Apache Kafka")
    quick = parser.parse_args().quick
    idle_s = 2 if quick else 20
    peers = (subjects.ZURAU, subjects.REDIS, subjects.NATS) + (() if quick else (subjects.KAFKA,))
    found = {}
    for name in subjects.available(peers):
        with subjects.running(name) as subject:
            fresh = resident_bytes(subject.pid)
            connect(subject, b"x" * 100).close()
            used = cpu_s(subject.pid)
            time.sleep(idle_s)
            found[name] = (fresh / MB, resident_bytes(subject.pid) / MB, (cpu_s(subject.pid) - used) / idle_s * 100)
    ours = found[subjects.ZURAU][1]
    rows = {name: [fresh, later, cpu, ratio(later, ours)] for name, (fresh, later, cpu) in found.items()}
    show(
        "Idle broker",
        ["MB when ready", f"MB after {idle_s} s", "% of a core", "zurau = 1"],
        rows,
        f"Resident memory, after one record. Budget for zurau: {BUDGET_MB} MB.",
    )


if __name__ == "__main__":
    main()
