"""What it costs to make records of many partitions safe at once: `python bench/flush.py`.

The measure is one flush (fdatasync) of one file to which a batch was appended, on the same disk in the same run. Beside
it: a request with acks=all and flush=fsync for one partition, and one for many, from the first byte sent to the answer,
and the same where nothing is waited for (flush=os): the difference is what it costs that they are safe.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import subjects
from measure import Spread, console, ratio, show
from raw_batches import RawBatches

BUDGET = 4.0
PARTITIONS = 100
SIZE = 1000
ONE_FILE = "one flush of one file"


class Appended:
    """A file that grows by a batch each time."""

    def __init__(self, directory: str) -> None:
        self._descriptor = os.open(Path(directory) / "file", os.O_RDWR | os.O_CREAT | os.O_APPEND)

    def append_and_flush(self) -> None:
        os.write(self._descriptor, b"x" * SIZE)
        os.fdatasync(self._descriptor)


def timed_ms(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    repeats = 30 if parser.parse_args().quick else 200
    many = f"{PARTITIONS} partitions, acks=all"
    with (
        tempfile.TemporaryDirectory(prefix="zurau-bench-") as directory,
        subjects.running(subjects.ZURAU) as broker,
        subjects.running(subjects.ZURAU_OS) as unsafe,
    ):
        calls: dict[str, Callable[[], None]] = {
            ONE_FILE: Appended(directory).append_and_flush,
            "1 partition, acks=all": RawBatches(broker.port, "one", 1, 1, SIZE).produce,
            many: RawBatches(broker.port, "many", PARTITIONS, 1, SIZE).produce,
            f"{many}, flush=os": RawBatches(unsafe.port, "many", PARTITIONS, 1, SIZE).produce,
        }
        found: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(repeats):
            for name, call in calls.items():
                found[name].append(timed_ms(call))
    spreads = {name: Spread(values) for name, values in found.items()}
    one = spreads[ONE_FILE]
    rows = {
        name: [spread.best, spread.median, ratio(spread.best, one.best), ratio(spread.median, one.median)]
        for name, spread in spreads.items()
    }
    show("Making it safe (ms)", ["best", "median", "one flush = 1, best", "median"], rows)
    safe = [with_flush - without for with_flush, without in zip(found[many], found[f"{many}, flush=os"], strict=True)]
    times = Spread(safe).median / one.median
    console.print(f"to make {PARTITIONS} safe takes {times:.1f} times one flush of one file (budget: {BUDGET})\n")


if __name__ == "__main__":
    main()
