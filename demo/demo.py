"""The logs pipeline, live: generators, three brokers, Spark, result topics and a lake; and half-way a leader is killed.

Everything is real: three times `zurau serve` and `zurau pipeline run logs` are processes of their own, and files are
files. The generator knows what must come out of its lines, late, doubled and broken ones included; at the end the
result topics and the lake have to say exactly that. Run it with `make demo`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds
from rich.console import Console
from rich.live import Live

from pipeline import PipelineProcess
from pyspark_zurau.pipelines.generated import BROKEN, DUPLICATE, LATE, TOO_LATE, Generated, at_rate, produce
from pyspark_zurau.pipelines.logs.generate import Expected, Line, expect, make_lines, render
from results import Results, second
from zurau.chaos.downtime import longest_gap_s
from zurau.client.cluster import Cluster as Client
from zurau.client.producer import Producer
from zurau.ids import TopicPartition
from zurau.testing import Cluster

TOPICS = {"web": "weblogs", "services": "servicelogs"}
PREFIX = "logs"
BROKERS = 3
PARTITIONS = 2
#: For so long the broker that was killed stays away.
AWAY_S = 5.0
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
        #: When each partition acknowledged something.
        self._acknowledged_s: dict[TopicPartition, list[float]] = defaultdict(list)

    def start(self) -> None:
        self._thread.start()

    @property
    def are_done(self) -> bool:
        return self.acknowledged == len(self._lines)

    def longest_pause_ms(self, since_s: float) -> float:
        """Of any partition, as this client saw it: until it knows the new leader, and is acknowledged by that one."""
        now_s = time.monotonic()
        pauses_s = (longest_gap_s(moments, since_s, now_s) for moments in list(self._acknowledged_s.values()))
        return max(pauses_s, default=0.0) * 1000

    def _run(self) -> None:
        def count(partition: TopicPartition, _offset: int, records: int) -> None:
            self.acknowledged += records
            self._acknowledged_s[partition].append(time.monotonic())

        with Client(self._bootstrap) as cluster, Producer(cluster, on_delivered=count) as producer:
            records = (render(line, TOPICS) for line in self._lines)
            produce(self._noticing_half(at_rate(records, self._rate, producer.poll)), producer)

    def _noticing_half(self, records: Iterator[Generated]) -> Iterator[Generated]:
        for number, record in enumerate(records):
            if number == len(self._lines) // 2:
                self.half_way.set()
            yield record


class Failover:
    """Half-way the leader of the web logs is killed. The others take over, and after a while it comes back."""

    def __init__(self, brokers: Cluster, live: Generators) -> None:
        self._brokers = brokers
        self._live = live
        self._killed: int | None = None
        self._killed_s = 0.0
        self._pause = ""

    def go_on(self) -> str:
        """Do what is due, and say how things stand."""
        if self._killed is None:
            if self._live.half_way.is_set():
                self._killed, self._killed_s = self._brokers.leader_of(TOPICS["web"]), time.monotonic()
                self._brokers.kill(self._killed)
            return f"{BROKERS} brokers are serving"
        if not self._pause and time.monotonic() > self._killed_s + AWAY_S:
            self._pause = f", others led after {self._live.longest_pause_ms(self._killed_s):.0f} ms, and it is back"
            self._brokers.start_again(self._killed)
        return f"broker {self._killed}, a leader, was killed with -9{self._pause}"


def run(line_count: int, rate: float, console: Console) -> bool:
    start_ms = int(time.time() * 1000) - int(line_count / 50 * 1000)
    lines = list(make_lines(line_count, seed=1883, start_ms=start_ms, closes=True))
    expected = expect(lines)
    began_s = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="zurau-demo-") as name,
        Cluster(
            BROKERS, flush="fsync", log_level="error", num_partitions=PARTITIONS, default_replication_factor=BROKERS
        ) as brokers,
    ):
        console.print(f"{BROKERS} brokers were one cluster in {(time.monotonic() - began_s) * 1000:.0f} ms")
        for topic in TOPICS.values():
            brokers.create_topic(topic, PARTITIONS)
        directory = Path(name)
        lake = directory / "lake"
        pipeline = PipelineProcess(
            directory, brokers.bootstrap, lake=str(lake), checkpoint=str(directory / "checkpoint"), results=PREFIX
        )
        results = Results(brokers.bootstrap, PREFIX, lake)
        pipeline.start()
        results.start()
        try:
            with shown(console, results) as show:
                play(brokers, pipeline, results, lines, expected, rate, show)
        finally:
            pipeline.stop()
            results.stop()
        return judge(expected, results, console)


def play(
    brokers: Cluster,
    pipeline: PipelineProcess,
    results: Results,
    lines: Sequence[Line],
    expected: Expected,
    rate: float,
    show: Show,
) -> None:
    """A backlog, then live lines, a leader's death half-way, and on until everything has come out."""
    began_s = time.monotonic()
    deadline_s = began_s + PATIENCE_S
    backlog = Generators(brokers.bootstrap, lines[:BACKLOG], 0)
    backlog.start()
    while not results.newest and time.monotonic() < deadline_s:
        pipeline.check()
        show(f"{backlog.acknowledged:,} lines are waiting; Spark is starting")
    first = f"the first result was there after {time.monotonic() - began_s:.0f} s"
    live = Generators(brokers.bootstrap, lines[BACKLOG:], rate)
    live.start()
    failover = Failover(brokers, live)
    while time.monotonic() < deadline_s and not (live.are_done and is_complete(results, expected)):
        pipeline.check()
        show(f"{backlog.acknowledged + live.acknowledged:,} lines acknowledged; {failover.go_on()}; {first}")


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
