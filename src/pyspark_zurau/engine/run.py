"""A pipeline while it runs: its queries, how far they are, and how they end.

Queries are independent; when one fails the others are stopped, each after the batch it is in. Nothing is lost by that
or by any other end: what a query had not finished it does again from its checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_zurau.engine.declaration import FAIL, Pipeline, TopicTarget
from pyspark_zurau.engine.failures import explain
from pyspark_zurau.engine.progress import (
    FAILED,
    FINISHED,
    RUNNING,
    STOPPED,
    PipelineStatus,
    first_status,
    follow,
    publish,
)
from pyspark_zurau.engine.sinks.starting import start, start_sink
from pyspark_zurau.engine.sinks.topic import write_topic
from pyspark_zurau.engine.sources import dead_letters
from pyspark_zurau.engine.steps import make_views

#: Besides those of every session: few and small shuffles, planned once, and times that mean the same everywhere.
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.sql.streaming.stopTimeout": "60s",
}
INTERVAL_S = 0.5
BEGIN_PATIENCE_S = 30.0
STOP_PATIENCE_S = 120.0
SLOW_PYTHON = "Python worker failed to connect back"
#: What Spark calls the time before the first offsets are known.
BEGINNINGS = ("Initializing StreamExecution", "Initializing sources")


class Execution:
    """Starts every query at once; `status` has what is known of them."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._queries: dict[str, StreamingQuery] = {}
        self.error: BaseException | None = None
        kinds = {f"{name} dead letters": "topic" for name in _with_dead_letters(pipeline)}
        kinds |= {name: sink.kind for name, sink in pipeline.sinks.items()}
        self.status: PipelineStatus = first_status(pipeline.name, pipeline.checkpoint, kinds)
        frames = make_views(spark, pipeline)
        with ExitStack() as undo:
            undo.callback(self.stop)
            self._start_dead_letters(spark)
            for sink in pipeline.sinks.values():
                place = f"{pipeline.checkpoint}/{sink.name}"
                self._queries[sink.name] = _begin(partial(start_sink, frames[sink.origin], sink, place))
            undo.pop_all()

    @property
    def is_active(self) -> bool:
        return any(query.isActive for query in self._queries.values())

    def wait(self, is_stopping: Callable[[], bool], on_progress: Callable[[PipelineStatus], None]) -> PipelineStatus:
        """Until all queries have ended by themselves, one has failed, or the caller wants to stop."""
        while self.is_active and self.error is None and not is_stopping():
            self._look()
            on_progress(self.status)
            self._find_failure()
            time.sleep(INTERVAL_S)
        stopped = is_stopping() and self.is_active
        self._find_failure()
        self.stop()
        self._find_failure()
        self._look()
        state = FAILED if self.error else STOPPED if stopped else FINISHED
        self._publish(replace(self.status, state=state, reason=self._reason()))
        on_progress(self.status)
        return self.status

    def stop(self) -> None:
        """Each query after the batch it is in."""
        deadline_s = time.monotonic() + STOP_PATIENCE_S
        for query in self._queries.values():
            _wait_for_batch(query, deadline_s)
            query.stop()

    def _start_dead_letters(self, spark: SparkSession) -> None:
        for name in _with_dead_letters(self._pipeline):
            source = self._pipeline.sources[name]
            assert source.dead_letter is not None
            target = TopicTarget(source.bootstrap, source.dead_letter, "raw", None, {})
            writer = write_topic(dead_letters(spark, source), target, "append")
            title, place = f"{name} dead letters", f"{self._pipeline.checkpoint}/dead-letters/{name}"
            self._queries[title] = _begin(partial(start, writer, title, self._pipeline.trigger, place))

    def _look(self) -> None:
        queries = tuple(follow(known, self._queries[known.name]) for known in self.status.queries)
        self._publish(replace(self.status, queries=queries, updated_s=time.time(), state=RUNNING))

    def _publish(self, status: PipelineStatus) -> None:
        self.status = status
        publish(status)

    def _find_failure(self) -> None:
        for name, query in self._queries.items():
            found: StreamingQueryException | None = query.exception() if self.error is None else None
            if found is not None:
                self.error, self._failed = found, name

    def _reason(self) -> str | None:
        return f"{self._failed}: {explain(self.error)}" if self.error else None


def _with_dead_letters(pipeline: Pipeline) -> list[str]:
    return [name for name, source in pipeline.sources.items() if source.dead_letter not in {None, FAIL}]


def _begin(start_query: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Wait until its Python process is there.

    Spark gives each ten seconds to start. Several at once need longer; so they start one after the other, and one that
    was too slow, on a machine with much else to do, is started again.
    """
    deadline_s = time.monotonic() + BEGIN_PATIENCE_S
    query = start_query()
    while query.isActive and query.status["message"] in BEGINNINGS and time.monotonic() < deadline_s:
        time.sleep(0.02)
    failure = query.exception()
    return start_query() if failure is not None and SLOW_PYTHON in str(failure) else query


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
