"""One client writes and reads as fast as it can; who works harder, the client or the broker?

    python bench/throughput.py

The same client, librdkafka, in two dresses: confluent-kafka (Python calls it for every record) and kcat (C all
through, so the hardest customer there is). CPU of the broker is set against CPU of the client in the same span, and
against the bytes moved. Redis Streams and NATS JetStream get their own Python clients, whose cost says nothing here;
what their servers spend on a gigabyte does.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import subjects
from load import PIPELINE
from measure import console, cpu_s, show
from subjects import NATS, REDIS, SPEAK_KAFKA, ZURAU, Running

BUDGET = 0.25
LIBRARIES = {REDIS: "redis-py", NATS: "nats-py"}
Load = Callable[[Running, str, str, int, int], tuple[float, float]]
WARM_UP_BYTES = 5_000_000
#: Their Python clients are so slow that a tenth has to do.
SHARE = {REDIS: 0.1, NATS: 0.05}
SETTLE_S = 5
IDLE_SHARE = 0.03
_KCAT_OPTIONS = {
    "produce": {"linger.ms": 5, "batch.size": 1_000_000, "queue.buffering.max.messages": 200_000},
    "consume": {"queued.min.messages": 10_000_000, "fetch.message.max.bytes": 4_000_000},
}


@dataclass(frozen=True)
class Span:
    """What moving some bytes once took."""

    megabytes: float
    wall_s: float
    client_s: float
    broker_s: float


def python_client(subject: Running, topic: str, direction: str, count: int, size: int) -> tuple[float, float]:
    library = LIBRARIES.get(subject.name, "confluent-kafka")
    load = [sys.executable, str(Path(__file__).parent / "load.py"), library, direction]
    done = subprocess.run(
        [*load, subject.bootstrap, topic, str(count), str(size)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{library} {direction} against {subject.name}: {done.stderr[-2000:]}")
    said = json.loads(done.stdout.splitlines()[-1])
    return said["wall_s"], said["cpu_s"]


def kcat(subject: Running, topic: str, direction: str, count: int, size: int) -> tuple[float, float]:
    common = ["kcat", "-q", "-b", subject.bootstrap, "-t", topic, "-p", "0"]
    options = _KCAT_OPTIONS[direction]
    common += [word for name, value in options.items() for word in ("-X", f"{name}={value}")]
    with tempfile.NamedTemporaryFile(prefix="zurau-bench-", dir="/dev/shm") as lines:
        if direction == "produce":
            lines.write((b"x" * (size - 1) + b"y\n") * count)
            lines.flush()
            command = [*common, "-P", "-l", lines.name]
        else:
            command = [*common, "-C", "-o", "beginning", "-c", str(count), "-u"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True, timeout=600)
        wall_s = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(name: str, load: Load, megabytes: int, size: int) -> dict[str, Span]:
    """Write and then read records on a fresh broker that a small round has warmed up."""
    spans = {}
    count, warm_up = (
        max(PIPELINE, round(volume * SHARE.get(name, 1) / size / PIPELINE) * PIPELINE)
        for volume in (megabytes * 1_000_000, WARM_UP_BYTES)
    )
    with subjects.running(name) as subject:
        if name in SPEAK_KAFKA:
            make_topics(subject, "warm-up", "bench")
        for direction in ("produce", "consume"):
            load(subject, "warm-up", direction, warm_up, size)
        for direction in ("produce", "consume"):
            used = cpu_s(subject.pid)
            wall_s, client_s = load(subject, "bench", direction, count, size)
            settle(subject)
            spans[direction] = Span(count * size / 1e6, wall_s, client_s, cpu_s(subject.pid) - used)
    return spans


def settle(subject: Running) -> None:
    """What the broker still does for this load after the client is done belongs to it too."""
    deadline = time.monotonic() + SETTLE_S
    used = cpu_s(subject.pid)
    while time.monotonic() < deadline:
        time.sleep(0.2)
        now = cpu_s(subject.pid)
        if now - used < IDLE_SHARE * 0.2:
            return
        used = now


def make_topics(subject: Running, *names: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": subject.bootstrap})
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        future.result(timeout=30)


def report(size: int, found: dict[tuple[str, str], list[dict[str, Span]]]) -> None:
    for direction in ("produce", "consume"):
        rows = {}
        for (name, client), repeats in found.items():
            spans = [spans[direction] for spans in repeats]
            rates = [span.megabytes / span.wall_s for span in spans]
            shares = [span.broker_s / span.client_s for span in spans]
            costs = [span.broker_s / span.megabytes * 1000 for span in spans]
            share = f"{median(shares):.0%}" if name in SPEAK_KAFKA else "-"
            rows[f"{name} · {client}"] = [max(rates), median(rates), share, min(costs), median(costs)]
        columns = ["MB/s best", "median", "broker CPU / client CPU", "broker CPU s/GB best", "median"]
        show(f"{direction}, records of {size:,} B", columns, rows)
        ours = [spans[direction] for (name, client), all_ in found.items() if name == ZURAU for spans in all_]
        worst = max(span.broker_s / span.client_s for span in ours)
        console.print(f"worst share of zurau in this table: {worst:.0%} of the client's CPU (budget: {BUDGET:.0%})\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="60 MB once instead of 300 MB three times, only Zurau")
    parser.add_argument("--megabytes", type=int, help="how much to write and read, instead")
    arguments = parser.parse_args()
    quick = arguments.quick
    megabytes = arguments.megabytes or (60 if quick else 300)
    names = subjects.available((*SPEAK_KAFKA[:2],) if quick else (*SPEAK_KAFKA, REDIS, NATS))
    for size in (100, 1000):
        found: dict[tuple[str, str], list[dict[str, Span]]] = defaultdict(list)
        for _ in range(1 if quick else 3):
            for name in names:
                found[name, LIBRARIES.get(name, "confluent-kafka")].append(
                    measure(name, python_client, megabytes, size)
                )
                if name in SPEAK_KAFKA and shutil.which("kcat"):
                    found[name, "kcat"].append(measure(name, kcat, megabytes, size))
        report(size, found)


if __name__ == "__main__":
    main()
