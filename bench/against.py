"""This checkout beside another one, in one run: `python bench/against.py --peer DIR`.

Both brokers are measured in turns, with the Python that runs this, so that a slow minute hits both. The client is a
bare socket that sends the same request again and again. A ratio below 1 is better than the peer. DIR is a checkout
whose compiled modules are built (`make setup` there, or copy them).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import subjects
from measure import Spread, console, cpu_s, percentile, resident_bytes, show
from raw_batches import RawBatches
from raw_clients import RawKafka

OURS = Path(__file__).parents[1]
PARTITIONS = 6
RECORDS, SIZE = 16, 1000
IDLE_S = 2
#: Worse by no more than this is no worse.
TOLERANCE = 1.05
GB = 1e9


@contextmanager
def broker_of(checkout: Path, **settings: object) -> Iterator[subjects.Running]:
    """`zurau serve` as that checkout has it."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(checkout / "src")
    try:
        with tempfile.TemporaryDirectory(prefix="zurau-bench-") as root:
            broker = subjects.ZurauBroker(Path(root), **settings)
            with broker:
                yield subjects.Running(str(checkout), broker.pid, broker.port, Path(root))
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def starting(checkout: Path, _: int) -> dict[str, float]:
    began = time.perf_counter()
    with broker_of(checkout) as broker:
        RawKafka(broker.port, b"x" * 100, acks=-1).close()
        took = time.perf_counter() - began
        time.sleep(IDLE_S)
        return {"cold start, s": took, "idle memory, MB": resident_bytes(broker.pid) / 1e6}


def moving(checkout: Path, requests: int) -> dict[str, float]:
    found = {}
    with broker_of(checkout, flush="os") as broker:
        client = RawBatches(broker.port, "bench", PARTITIONS, RECORDS, SIZE)
        client.produce_many(requests // 5)
        total = client.request_bytes * requests
        batch_bytes = client.request_bytes // PARTITIONS
        calls: dict[str, Callable[[], object]] = {
            "produce": lambda: client.produce_many(requests),
            "fetch": lambda: client.fetch_all(requests, 8, batch_bytes),
        }
        for what, call in calls.items():
            used, began = cpu_s(broker.pid), time.perf_counter()
            call()
            found[f"{what}, CPU s/GB"] = (cpu_s(broker.pid) - used) / total * GB
            found[f"{what}, s/GB"] = (time.perf_counter() - began) / total * GB
    return found


def waiting(checkout: Path, requests: int) -> dict[str, float]:
    found = {}
    for flush in ("os", "fsync"):
        with broker_of(checkout, flush=flush) as broker:
            client = RawKafka(broker.port, b"x" * 100, acks=-1)
            times = []
            for _ in range(requests):
                began = time.perf_counter()
                client.append()
                times.append((time.perf_counter() - began) * 1e6)
            # Not the median: of a disk that others use it says more than of a broker.
            found[f"one record, acks=all, flush={flush}, p25 us"] = percentile(times[requests // 5 :], 0.25)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", type=Path, required=True, help="the other checkout")
    parser.add_argument("--quick", action="store_true", help="less of everything")
    arguments = parser.parse_args()
    repeats, requests = (3, 1000) if arguments.quick else (7, 4000)
    checkouts = {"this": OURS, "peer": arguments.peer.resolve()}
    found: dict[str, dict[str, list[float]]] = {}
    for checkout in checkouts.values():
        starting(checkout, requests)  # the first start ever also writes the compiled modules
    for number in range(repeats):
        for measure in (starting, moving, waiting):
            # Whoever comes second may find the machine warmer, so they change places.
            for name, checkout in sorted(checkouts.items(), reverse=number % 2 == 1):
                for what, value in measure(checkout, requests).items():
                    found.setdefault(what, {"this": [], "peer": []})[name].append(value)
    rows = {}
    for what, values in found.items():
        this, peer = Spread(values["this"]), Spread(values["peer"])
        best, median = this.best / peer.best, this.median / peer.median
        verdict = "worse" if min(best, median) > TOLERANCE else "ok"
        rows[what] = [this.best, peer.best, f"{best:.2f}x", this.median, peer.median, f"{median:.2f}x", verdict]
    columns = ["best", "peer", "ratio", "median", "peer", "ratio", ""]
    show(
        f"This checkout and {arguments.peer}", columns, rows, f"{PARTITIONS} batches of {RECORDS} x {SIZE} B a request."
    )
    if any(row[-1] == "worse" for row in rows.values()):
        console.print(f"worse: more than {TOLERANCE - 1:.0%} above the peer, best and median")


if __name__ == "__main__":
    main()
