"""How long from nothing to the first record that is acknowledged: `python bench/cold_start.py`.

For processes the clock starts before the process does, on an empty directory, and stops when a bare socket has had
one record acknowledged. For `zurau.testing.Broker` it starts in a fresh interpreter that knows only the client.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import subjects
from measure import Spread, in_turns, ratio, show
from raw_clients import RawKafka, RawNats, RawRedis

IN_PROCESS = "zurau.testing.Broker"
AGAIN = "zurau.testing.Broker, second in a process"
BUDGETS_S = {subjects.ZURAU: 0.5, IN_PROCESS: 0.3, AGAIN: 0.3}

_IN_PROCESS_SCRIPT = """
import sys, time
sys.path.insert(0, {bench!r})
from raw_clients import RawKafka  # the client's imports are not the broker's
times = []
for _ in range(2):
    began = time.perf_counter()
    from zurau.testing import Broker
    with Broker() as broker:
        RawKafka(broker.port, b"x" * 100).close()
        times.append(time.perf_counter() - began)
print(*times)
"""


def process_start_s(name: str) -> float:
    with tempfile.TemporaryDirectory(prefix="zurau-bench-") as root:
        directory = Path(root)
        began = time.perf_counter()
        if name == subjects.ZURAU:
            with subjects.ZurauBroker(directory) as broker:
                RawKafka(broker.port, b"x" * 100, acks=-1).close()
                return time.perf_counter() - began
        if name == subjects.KAFKA:
            with subjects.ApacheKafka(directory) as kafka:
                RawKafka(kafka.port, b"x" * 100, acks=-1).close()
                return time.perf_counter() - began
        client = RawRedis if name == subjects.REDIS else RawNats
        command = subjects.redis_command if name == subjects.REDIS else subjects.nats_command
        return _program_start_s(command, client, directory)


def _program_start_s(command, client, directory: Path) -> float:  # type: ignore[no-untyped-def]
    port = subjects.free_port()
    began = time.perf_counter()
    process = subprocess.Popen(command(directory, port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        subjects.wait_listening(port)
        client(port, b"x" * 100).close()
        return time.perf_counter() - began
    finally:
        process.terminate()
        process.wait(30)


def in_process_start_s() -> tuple[float, float]:
    script = _IN_PROCESS_SCRIPT.format(bench=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    first, second = done.stdout.split()
    return float(first), float(second)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, and no Apache Kafka")
    quick = parser.parse_args().quick
    peers = (subjects.ZURAU, subjects.REDIS, subjects.NATS) + (() if quick else (subjects.KAFKA,))
    names = subjects.available(peers)
    process_start_s(subjects.ZURAU)  # the first start ever also writes the compiled modules
    spreads = in_turns(names, process_start_s, 3 if quick else 7)
    inside = [in_process_start_s() for _ in range(3 if quick else 7)]
    spreads[IN_PROCESS] = Spread([first for first, _ in inside])
    spreads[AGAIN] = Spread([second for _, second in inside])
    rows = {
        name: [spread.best, spread.median, f"{BUDGETS_S[name]:.1f}" if name in BUDGETS_S else "-",
               ratio(spread.median, spreads[subjects.ZURAU].median)]
        for name, spread in spreads.items()
    }  # fmt: skip
    show(
        "Cold start: empty directory to first acknowledged record (s)",
        ["best", "median", "budget", "zurau = 1"],
        rows,
    )


if __name__ == "__main__":
    main()
