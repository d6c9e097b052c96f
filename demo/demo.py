"""The logs pipeline, live: generators, a broker, Spark, result topics and a lake; and half-way the broker is killed.

Everything is real: `zurau serve` and `zurau pipeline run logs` are processes of their own, and files are files. The
generator knows what must come out of its lines, late, doubled and broken ones included; at the end the result topics
and the lake have to say exactly that. Run it with `make demo`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds
from rich.console import Console
from rich.live import Live

from processes import BrokerProcess, PipelineProcess
from pyspark_zurau.pipelines.generated import BROKEN, DUPLICATE, LATE, TOO_LATE, Generated, at_rate, produce
from pyspark_zurau.pipelines.logs.generate import Expected, Line, expect, make_lines, render
from results import Results, second
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.producer import Producer

TOPICS = {"web": "weblogs", "services": "servicelogs"}
PREFIX = "logs"
#: What Spark finds when it is ready; the rest is live.
BACKLOG = 500
#: For a machine with much else to do.
PATIENCE_S = 300.0
Show = Callable[[str], None]


class Generators:
    """A thread that produces lines; the client carries them over the crash by itself, each exactly once."""

    def __init__(self, bootstrap: str, lines: Sequence[Line], rate: float) -> None:
        self._bootstrap = bootstrap
        self._lines = lines
        self._rate = rate
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.half_way = threading.Event()
        self.acknowledged = 0

    def start(self) -> None:
        self._thread.start()

    @property
    def are_done(self) -> bool:
        return self.acknowledged == len(self._lines)

    def _run(self) -> None:
        def count(_partition: object, _offset: int, records: int) -> None:
            self.acknowledged += records

        with Cluster(self._bootstrap) as cluster, Producer(cluster, on_delivered=count) as producer:
            records = (render(line, TOPICS) for line in self._lines)
            produce(self._noticing_half(at_rate(records, self._rate, producer.poll)), producer)

    def _noticing_half(self, records: Iterator[Generated]) -> Iterator[Generated]:
        for number, record in enumerate(records):
            if number == len(self._lines) // 2:
                self.half_way.set()
            yield record


def run(line_count: int, rate: float, console: Console) -> bool:
    start_ms = int(time.time() * 1000) - int(line_count / 50 * 1000)
    lines = list(make_lines(line_count, seed=1883, start_ms=start_ms, closes=True))
    expected = expect(lines)
    with tempfile.TemporaryDirectory(prefix="zurau-demo-") as name:
        directory = Path(name)
        broker = BrokerProcess(directory / "data")
        console.print(f"a broker on an empty directory was ready in {broker.start() * 1000:.0f} ms")
        make_topics(broker.bootstrap)
        lake = directory / "lake"
        pipeline = PipelineProcess(
            directory, broker.bootstrap, lake=str(lake), checkpoint=str(directory / "checkpoint"), results=PREFIX
        )
        results = Results(broker.bootstrap, PREFIX, lake)
        pipeline.start()
        results.start()
        try:
            with shown(console, results) as show:
                play(broker, pipeline, results, lines, expected, rate, show)
        finally:
            pipeline.stop()
            results.stop()
            broker.stop()
        return judge(expected, results, console)


def play(
    broker: BrokerProcess,
    pipeline: PipelineProcess,
    results: Results,
    lines: Sequence[Line],
    expected: Expected,
    rate: float,
    show: Show,
) -> None:
    """A backlog, then live lines, a crash half-way, and on until everything has come out."""
    deadline_s = time.monotonic() + PATIENCE_S
    backlog = Generators(broker.bootstrap, lines[:BACKLOG], 0)
    backlog.start()
    while not results.newest and time.monotonic() < deadline_s:
        pipeline.check()
        show(f"{backlog.acknowledged:,} lines are waiting; Spark is starting")
    live = Generators(broker.bootstrap, lines[BACKLOG:], rate)
    live.start()
    state, was_killed = "the broker is serving", False
    while time.monotonic() < deadline_s and not (live.are_done and is_complete(results, expected)):
        pipeline.check()
        if live.half_way.is_set() and not was_killed:
            was_killed = True
            broker.kill()
            show(state := "the broker was killed with -9")
            state = f"the broker was killed with -9, and was back in {broker.start() * 1000:.0f} ms"
        show(f"{backlog.acknowledged + live.acknowledged:,} lines acknowledged; {state}")


def is_complete(results: Results, expected: Expected) -> bool:
    """Whether there is nothing left to wait for."""
    return (
        results.counted >= sum(window.requests for window in expected.windows.values())
        and len(results.records["dead"]) >= expected.kinds[BROKEN]
        and len(results.records["sessions"]) >= len(expected.sessions)
        and len(results.records["alerts"]) >= len(expected.alerts(10, 0.2))
        and results.lake_rows() >= expected.parsed
    )


def judge(expected: Expected, results: Results, console: Console) -> bool:
    """Compare what came out with what must, number by number."""
    windows = {
        key: (row["requests"], row["errors"], row["p50_ms"], row["p95_ms"], row["p99_ms"])
        for key, row in results.newest.items()
    }
    wanted_windows = {
        key: (window.requests, window.errors, *map(window.percentile_ms, (0.5, 0.95, 0.99)))
        for key, window in expected.windows.items()
    }
    alerts = {(row["service"], second(row["window_start"])) for row in results.rows("alerts")}
    sessions = {
        (row["client"], second(row["began"]), second(row["ended"]), row["requests"]) for row in results.rows("sessions")
    }
    comparisons = [
        ("requests in windows", results.counted, sum(window.requests for window in expected.windows.values())),
        (
            "windows, exact in counts and percentiles",
            sum(windows.get(key) == value for key, value in wanted_windows.items()),
            len(wanted_windows),
        ),
        ("alerts", len(alerts & expected.alerts(10, 0.2)), len(expected.alerts(10, 0.2))),
        ("sessions", len(sessions & expected.sessions), len(expected.sessions)),
        ("broken lines in the dead-letter topic", len(results.records["dead"]), expected.kinds[BROKEN]),
        ("lines in the lake", results.lake_rows(), expected.parsed),
        ("of them marked as too late", results.lake_rows(ds.field("problem").is_valid()), expected.kinds[TOO_LATE]),
    ]
    console.print(
        f"{expected.produced:,} lines: {expected.kinds[LATE]} late, {expected.kinds[TOO_LATE]} too late, "
        f"{expected.kinds[DUPLICATE]} twice, {expected.kinds[BROKEN]} broken"
    )
    good = True
    for what, found, wanted in comparisons:
        good &= found == wanted
        console.print(f"  {'ok ' if found == wanted else '[bold red]BAD[/]'} {found:,} of {wanted:,} {what}")
    verdict = (
        "[bold green]every count is what was produced[/]" if good else "[bold red]this should not have happened[/]"
    )
    console.print(verdict)
    return good


def make_topics(bootstrap: str) -> None:
    with Cluster(bootstrap) as cluster:
        for topic in TOPICS.values():
            Admin(cluster).create_topic(NewTopic(topic))


@contextmanager
def shown(console: Console, results: Results) -> Iterator[Show]:
    """A table that changes in place; where nobody looks, the table every few seconds, when something has changed."""
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4) as live:

            def draw(state: str) -> None:
                live.update(results.table(_headline(state, results)))
                time.sleep(0.25)

            yield draw
        return
    said, said_s = "", 0.0

    def say(state: str) -> None:
        nonlocal said, said_s
        headline = _headline(state, results)
        if headline != said and time.monotonic() - said_s > 5:
            said, said_s = headline, time.monotonic()
            console.print(results.table(headline) if results.newest else headline)
        time.sleep(0.25)

    yield say


def _headline(state: str, results: Results) -> str:
    alerts = len(results.records["alerts"])
    return f"{state}; {results.counted:,} requests counted in {len(results.newest)} windows, {alerts} alerts"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=10_000, help="how many log lines")
    parser.add_argument("--rate", type=float, default=500.0, help="lines per second, once Spark is ready")
    arguments = parser.parse_args()
    began_s = time.monotonic()
    # A file is as wide as the table needs it; a terminal is as wide as it is.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    good = run(arguments.lines, arguments.rate, console)
    console.print(f"took {time.monotonic() - began_s:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
