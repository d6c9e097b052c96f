"""A pipeline while it runs: its queries, how far they are, and how they end.

Queries are independent; when one fails the others are stopped, each after the batch it is in. Nothing is lost by that
or by any other end: what a query had not finished it does again from its checkpoint.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_zurau.engine.declaration import FAIL, Pipeline, Sink
from pyspark_zurau.engine.failures import explain, java_classes, placed
from pyspark_zurau.engine.progress import (
    FAILED,
    FINISHED,
    STOPPED,
    PipelineStatus,
    first_status,
    follow,
    publish,
)
from pyspark_zurau.engine.sinks.starting import clean_up, start, start_sink
from pyspark_zurau.engine.sinks.topic import write_topic
from pyspark_zurau.engine.sources import dead_letter_target, dead_letters
from pyspark_zurau.engine.steps import make_views

#: Besides those of every session: few and small shuffles, planned once, and times that mean the same everywhere.
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    # A page of its own for each pipeline, wherever there is room; it keeps a little of what has been.
    "spark.ui.port": "0",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.sql.ui.retainedExecutions": "100",
    "spark.sql.streaming.stopTimeout": "60s",
}
INTERVAL_S = 0.5
BEGIN_PATIENCE_S = 30.0
STOP_PATIENCE_S = 120.0
#: What Spark calls the time before the first offsets are known.
BEGINNINGS = ("Initializing StreamExecution", "Initializing sources")
#: What passes by itself: a machine is so busy that Python did not start within the ten seconds that Spark gives it.
TRANSIENT = {"java.net.SocketTimeoutException"}
RESTARTS_MAX = 10
#: So many values are judged before a share of dead letters says anything.
JUDGED_MIN = 100


class Execution:
    """`status` has what is known of the queries; it is published as it changes."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._queries: dict[str, StreamingQuery] = {}
        self._frames: dict[str, DataFrame] = {}
        self._restarts: Counter[str] = Counter()
        #: Of each query how often it reads each of its sources, as far as it is known.
        self._scans: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._failed = ""
        self._too_many_dead: str | None = None
        self.error: StreamingQueryException | None = None
        kinds = {_title(name): "topic" for name in _with_dead_letters(pipeline)}
        kinds |= {name: sink.kind for name, sink in pipeline.sinks.items()}
        self.status: PipelineStatus = first_status(pipeline.name, pipeline.checkpoint, kinds)

    def plan(self) -> None:
        """Have Spark analyse every source and step; what is wrong in them is raised here."""
        self._frames = make_views(self._spark, self._pipeline)

    def run(self, is_stopping: Callable[[], bool], on_progress: Callable[[PipelineStatus], None]) -> PipelineStatus:
        """Start all queries, and wait until they have ended, one has failed, or the caller wants to stop."""
        if not self._frames:
            self.plan()
        self._publish(self.status)
        with ExitStack() as undo:
            undo.callback(self.stop)
            starts = self._starts()
            for number, name in enumerate(starts):
                if not is_stopping() and not self._has_failed:
                    starts[name]()
                    with_batch = number == 0 and not self._is_real_time(name)
                    _let_begin(self._queries[name], is_stopping, with_batch=with_batch)
                    self._look(on_progress)
                    self._find_failures(starts)
            is_active = True
            while is_active and not self._has_failed and not is_stopping():
                time.sleep(INTERVAL_S)
                is_active = self._is_active()
                self._look(on_progress)
                is_active |= self._find_failures(starts)
            stopped = is_stopping() and not self._has_failed
        self._look(lambda _: None)
        self._find_failures({})
        state = FAILED if self._has_failed else STOPPED if stopped else FINISHED
        self._publish(replace(self.status, state=state, reason=self._reason()))
        on_progress(self.status)
        return self.status

    def stop(self) -> None:
        """Each query after the batch it is in."""
        deadline_s = time.monotonic() + STOP_PATIENCE_S
        for name, query in self._queries.items():
            if not self._is_real_time(name):  # there a batch lasts as long as from checkpoint to checkpoint
                _wait_for_batch(query, deadline_s)
            query.stop()
        for name in self._queries.keys() & self._pipeline.sinks.keys():
            clean_up(self._spark, self._pipeline.sinks[name], f"{self._pipeline.checkpoint}/{name}")

    def _starts(self) -> dict[str, Callable[[], None]]:
        """In this order, since the first result is what people wait for."""
        starts: dict[str, Callable[[], None]] = {}
        for sink in self._pipeline.sinks.values():
            starts[sink.name] = partial(self._start_sink, sink, self._frames[sink.origin])
        for name in _with_dead_letters(self._pipeline):
            starts[_title(name)] = partial(self._start_dead_letters, name)
        return starts

    def _start_dead_letters(self, name: str) -> None:
        source = self._pipeline.sources[name]
        with placed(self._pipeline.file, f"sources.{name}", "dead_letter"):
            writer = write_topic(dead_letters(self._spark, source), dead_letter_target(source), "append")
            place = f"{self._pipeline.checkpoint}/dead-letters/{name}"
            trigger = replace(self._pipeline.trigger, real_time=None)
            self._queries[_title(name)] = start(writer, _title(name), trigger, place)

    def _start_sink(self, sink: Sink, rows: DataFrame) -> None:
        with placed(self._pipeline.file, f"sinks.{sink.name}", ""):
            self._queries[sink.name] = start_sink(rows, sink, f"{self._pipeline.checkpoint}/{sink.name}")

    def _is_real_time(self, name: str) -> bool:
        return name in self._pipeline.sinks and self._pipeline.trigger.real_time is not None

    def _is_active(self) -> bool:
        return any(query.isActive for query in self._queries.values())

    def _look(self, on_progress: Callable[[PipelineStatus], None]) -> None:
        queries = tuple(
            follow(known, self._queries[known.name], self._scans[known.name]) if known.name in self._queries else known
            for known in self.status.queries
        )
        self._publish(replace(self.status, queries=queries, updated_s=time.time()))
        self._count_dead(is_over=not self._is_active())
        on_progress(self.status)

    def _count_dead(self, *, is_over: bool) -> None:
        """A wrong schema makes every value a dead letter, and all else looks well."""
        judged = {query.name: query.judged for query in self.status.queries if query.judged is not None}
        for name, source in self._pipeline.sources.items():
            found = judged.get(_title(name))
            if found is None or source.fail_on_dead is None or found.dead_rate <= source.fail_on_dead:
                continue
            if is_over or found.good + found.dead >= JUDGED_MIN:
                self._too_many_dead = f"source {name}: {found}; more than fail_on_dead = {source.fail_on_dead:g} allows"

    def _find_failures(self, starts: Mapping[str, Callable[[], None]]) -> bool:
        """Note the first query that failed. One that failed in passing is started again, which is the answer."""
        any_started = False
        for name, query in list(self._queries.items()):
            found = query.exception()
            if found is None or self.error is not None:
                continue
            if TRANSIENT & java_classes(found) and name in starts and self._restarts[name] < RESTARTS_MAX:
                self._restarts[name] += 1
                starts[name]()
                any_started = True
            else:
                self.error, self._failed = found, name
        return any_started

    def _publish(self, status: PipelineStatus) -> None:
        self.status = status
        publish(status)

    @property
    def _has_failed(self) -> bool:
        return self.error is not None or self._too_many_dead is not None

    def _reason(self) -> str | None:
        return f"{self._failed}: {explain(self.error)}" if self.error else self._too_many_dead


def _with_dead_letters(pipeline: Pipeline) -> list[str]:
    return [name for name, source in pipeline.sources.items() if source.dead_letter not in {None, FAIL}]


def _title(source: str) -> str:
    return f"{source} dead letters"


def _let_begin(query: StreamingQuery, is_stopping: Callable[[], bool], *, with_batch: bool) -> None:
    """Wait until its Python process is there. Spark gives each ten seconds to start; several at once need longer.

    With its first batch, if there is something to read: alone it has its result in half the time.
    """
    deadline_s = time.monotonic() + BEGIN_PATIENCE_S
    while query.isActive and time.monotonic() < deadline_s and not is_stopping():
        status = query.status
        is_in_batch = with_batch and status["isTriggerActive"] and query.lastProgress is None
        if status["message"] not in BEGINNINGS and not is_in_batch:
            return
        time.sleep(0.02)


def _wait_for_batch(query: StreamingQuery, deadline_s: float) -> None:
    """Until the batch of this moment is done, or the query waits for the next."""
    before = _last_batch(query)
    while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == before:
        if time.monotonic() > deadline_s:
            return
        time.sleep(0.02)


def _last_batch(query: StreamingQuery) -> tuple[int, str] | None:
    last = query.lastProgress
    return (last.batchId, last.timestamp) if last else None
