"""Three brokers of Zurau beside three of Apache Kafka, the same client, the same flush policy, in turns.

    python bench/against_kafka.py

Topics have three replicas and everything is written with acks=all. The client is librdkafka (large batches) and, where
it says so, Apache Kafka's own producer performance tool with Java's defaults (16 kB batches). CPU and memory are those
of all three brokers together. Client and brokers share the machine.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import subjects
import trios
from measure import Spread, console, cpu_s, percentile, resident_bytes, show
from raw_clients import TOPIC, RawKafka
from subjects import run_tool
from trios import Trio

PARTITIONS = (1, 10, 100)
#: What Java's tool writes to, and records of which size.
JAVA_PARTITIONS, JAVA_SIZES = 6, (100, 1000)
IDLE_PARTITIONS = 1000
WARM_UP = 20_000
PATIENCE_S = 60
Found = dict[str, float]


def measure(name: str, quick: bool) -> Found:
    found: Found = {}
    began = time.perf_counter()
    with trios.running(name) as trio:
        trio.make_topic(TOPIC, 1)
        _, port = trio.leader_of(TOPIC)
        client = RawKafka(port, b"x" * 100, acks=-1, make_topic=False)
        found["empty directories to first acknowledged write, s"] = time.perf_counter() - began
        found |= latency(client, 300 if quick else 3000)
        client.close()
        for partitions in PARTITIONS:
            found |= librdkafka(trio, partitions, 40 if quick else 200)
        for size in JAVA_SIZES:
            found |= java(trio, size, 20 if quick else 100)
        found["memory of the three, MB"] = sum(map(resident_bytes, trio.pids.values())) / 1e6
        found["without writes after kill -9 of the leader, s"] = outage(trio)
    return found


def idle(name: str, quick: bool) -> Found:
    idle_s = 5.0 if quick else 20.0
    with trios.running(name) as trio:
        began = time.perf_counter()
        trio.make_topic("idle", IDLE_PARTITIONS)
        made_s = time.perf_counter() - began
        time.sleep(idle_s)
        before = _cpu_s(trio)
        time.sleep(idle_s)
        share = (_cpu_s(trio) - before) / idle_s / len(trio.pids)
    return {
        f"{IDLE_PARTITIONS:,} partitions created, s": made_s,
        f"{IDLE_PARTITIONS:,} idle partitions, % of a core for each broker": share * 100,
    }


def latency(client: RawKafka, count: int) -> Found:
    for _ in range(count // 3):
        client.append()
    times = []
    for _ in range(count):
        began = time.perf_counter()
        client.append()
        times.append((time.perf_counter() - began) * 1000)
    shares = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
    return {f"one record, {label}, ms": percentile(times, share) for label, share in shares.items()}


def librdkafka(trio: Trio, partitions: int, megabytes: int) -> Found:
    topic, size = f"rd-{partitions}", 1000
    trio.make_topic(topic, partitions)
    load = [sys.executable, str(Path(__file__).parent / "load.py"), "confluent-kafka", "produce", trio.bootstrap, topic]

    def run(count: int) -> float:
        command = [*load, str(count), str(size), str(partitions)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return float(json.loads(done.stdout.splitlines()[-1])["wall_s"])

    run(WARM_UP)
    return _moved(trio, f"librdkafka, {partitions} partitions", megabytes, lambda: run(megabytes * 1_000_000 // size))


def java(trio: Trio, size: int, megabytes: int) -> Found:
    topic = f"java-{size}"
    trio.make_topic(topic, JAVA_PARTITIONS)

    def run() -> float:
        count = megabytes * 1_000_000 // size
        options = ["--topic", topic, "--num-records", str(count), "--record-size", str(size), "--throughput", "-1"]
        properties = ["--producer-props", f"bootstrap.servers={trio.bootstrap}", "acks=all"]
        done = run_tool("ProducerPerformance", *options, *properties, timeout_s=600)
        rate = re.findall(r"([\d.]+) MB/sec", done.stdout)
        if not rate:
            sys.exit(f"ProducerPerformance against {trio.name}: {done.stdout[-500:]}{done.stderr[-2000:]}")
        return megabytes * 1e6 / (float(rate[-1]) * (1 << 20))

    return _moved(trio, f"Java's tool, {size} B", megabytes, run)


def _moved(trio: Trio, what: str, megabytes: int, run: Callable[[], float]) -> Found:
    before = _cpu_s(trio)
    wall_s = run()
    return {
        f"{what}, MB/s": megabytes / wall_s,
        f"{what}, CPU s/GB": (_cpu_s(trio) - before) / megabytes * 1000,
    }


def outage(trio: Trio) -> float:
    """The longest time between two acknowledgements around the death of a leader."""
    from confluent_kafka import Producer

    trio.make_topic("outage", 1)
    settings = {"bootstrap.servers": trio.bootstrap, "acks": "all", "linger.ms": 0, "enable.idempotence": True}
    producer = Producer(settings)
    acknowledged: list[float] = []
    stopped = threading.Event()

    def write() -> None:
        while not stopped.is_set():
            producer.produce(
                "outage", b"x", on_delivery=lambda error, _: error or acknowledged.append(time.monotonic())
            )
            producer.poll(0.005)
        producer.flush(PATIENCE_S)

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(2)
    leader, _ = trio.leader_of("outage")
    killed = time.monotonic()
    trio.kill(leader)
    while (not acknowledged or acknowledged[-1] < killed + 2) and time.monotonic() < killed + PATIENCE_S:
        time.sleep(0.05)
    stopped.set()
    writer.join()
    moments = [moment for moment in acknowledged if moment > killed - 1]
    return max(later - earlier for earlier, later in pairwise(moments))


def _cpu_s(trio: Trio) -> float:
    return sum(map(cpu_s, trio.pids.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less data, once")
    parser.add_argument("--repeats", type=int, help="instead of 3")
    arguments = parser.parse_args()
    if not subjects.available((subjects.KAFKA,)):
        sys.exit("there is nobody to compare with")
    found: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in trios.TOPICS}
    for repeat in range(arguments.repeats or (1 if arguments.quick else 3)):
        for name in trios.TOPICS:
            console.print(f"[dim]{name}, repeat {repeat + 1}[/]")
            for what, value in (measure(name, arguments.quick) | idle(name, arguments.quick)).items():
                found[name][what].append(value)
    rows = {
        what: [
            f"{spread.best:,.3g} / {spread.median:,.3g}"
            for spread in (_spread(what, found[name][what]) for name in found)
        ]
        for what in found[next(iter(found))]
    }
    show("Three brokers, three replicas, acks=all: best / median", list(found), rows)


def _spread(what: str, values: list[float]) -> Spread:
    return Spread(values, is_better_low="MB/s" not in what)


if __name__ == "__main__":
    main()
