"""What can be told about a pipeline before it runs: places outside the file, and queries as Spark understands them.

Spark analyses a query without reading anything, so a missing column or a misspelt function is found here. A step that
fails is not known to those after it; they are left out, so that one mistake is told once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pyspark_zurau.engine import avro
from pyspark_zurau.engine.declaration import (
    FAIL,
    DeltaTarget,
    IcebergTarget,
    ParquetTarget,
    Pipeline,
    PostgresTarget,
    Sink,
    TopicTarget,
)
from pyspark_zurau.engine.failures import in_words
from pyspark_zurau.engine.problems import Problem, Problems, did_you_mean
from pyspark_zurau.engine.sinks.topic import shape, writer_options
from pyspark_zurau.engine.sources import dead_letters, good_rows
from pyspark_zurau.engine.steps import load_function, register, run_step
from pyspark_zurau.engine.topics import find_missing
from pyspark_zurau.options.values import Values
from pyspark_zurau.writing.sink import parse_write_options
from zurau.errors import ZurauError

Frames = dict[str, DataFrame | None]


def check_files(pipeline: Pipeline, problems: Problems) -> None:
    """What the file names beside it: Avro schemas and functions."""
    for source in pipeline.sources.values():
        if source.schema_file is not None:
            with _told(f"sources.{source.name}", "schema_file", problems):
                avro.spark_schema(source.schema_file)
    for step in pipeline.steps.values():
        if step.python is not None:
            with _told(f"steps.{step.name}", "python", problems):
                load_function(step.python, pipeline.directory)


def check_places(pipeline: Pipeline, problems: Problems) -> list[Problem]:
    """Brokers, directories and databases. Gives the topics that are missing, which a run can make."""
    missing = find_missing(pipeline, problems)
    _check_directory(pipeline.checkpoint, "", "checkpoint", problems)
    for sink in pipeline.sinks.values():
        table = f"sinks.{sink.name}"
        if isinstance(sink.target, ParquetTarget | DeltaTarget | IcebergTarget) and sink.target.path is not None:
            _check_directory(sink.target.path, table, "path", problems)
        if isinstance(sink.target, PostgresTarget):
            from pyspark_zurau.engine.sinks.postgres_tables import explain_unreachable

            reason = explain_unreachable(sink.target.dsn)
            if reason:
                problems.add(table, "dsn", reason)
    return missing


def check_queries(spark: SparkSession, pipeline: Pipeline, problems: Problems) -> None:
    frames: Frames = {}
    good = partial(good_rows, real_time=bool(pipeline.trigger.real_time))
    for source in pipeline.sources.values():
        table = f"sources.{source.name}"
        frames[source.name] = _try(lambda source=source: good(spark, source), table, "schema", problems)  # type: ignore[misc]
        if source.dead_letter not in {None, FAIL} and frames[source.name] is not None:
            _try(lambda source=source: dead_letters(spark, source), table, "dead_letter", problems)  # type: ignore[misc]
    for step in pipeline.steps.values():
        frames[step.name] = None
        if _needs_what_failed(step.sql or " ".join(step.inputs), frames):
            continue
        known = {name: frame for name, frame in frames.items() if frame is not None}
        key = "sql" if step.sql else "python"
        frames[step.name] = _try(
            lambda step=step, known=known: run_step(spark, pipeline.directory, step, known),  # type: ignore[misc]
            f"steps.{step.name}",
            key,
            problems,
            name=step.name,
        )
    for sink in pipeline.sinks.values():
        rows = frames.get(sink.origin)
        if rows is not None:
            _check_sink(spark, sink, rows, problems)


@contextmanager
def _told(table: str, key: str, problems: Problems) -> Iterator[None]:
    try:
        yield
    except ZurauError as error:
        problems.add(table, key, str(error))


def _try(
    make: Callable[[], DataFrame], table: str, key: str, problems: Problems, name: str | None = None
) -> DataFrame | None:
    try:
        frame = make()
        frame.schema  # noqa: B018 - on Spark Connect a plan is analysed when its schema is asked for
        return register(name or table.partition(".")[2], frame) if key != "dead_letter" else frame
    except (PySparkException, ZurauError) as error:
        problems.add(table, key, in_words(error))
    except Py4JJavaError as error:
        problems.add(table, key, str(error.java_exception.getMessage()))
    return None


def _needs_what_failed(text: str, frames: Frames) -> bool:
    words = set(re.findall(r"\w+", text))
    return any(name in words for name, frame in frames.items() if frame is None)


def _check_sink(spark: SparkSession, sink: Sink, rows: DataFrame, problems: Problems) -> None:
    table = f"sinks.{sink.name}"
    for key in ("partition_by", "key", "latest_by", "delete"):
        named = getattr(sink.target, key, None) or ()
        for column in (named,) if isinstance(named, str) else named:
            if column not in rows.columns:
                what = f"{sink.origin} has no column {column!r}{did_you_mean(column, rows.columns)}"
                problems.add(table, key, what)
    if isinstance(sink.target, TopicTarget) and not (sink.target.key and sink.target.key not in rows.columns):
        try:
            shaped = shape(rows, sink.target)
            parse_write_options(Values(writer_options(sink.target)), shaped.schema, overwrite=False)
        except (PySparkException, ZurauError) as error:
            problems.add(table, "", in_words(error))
    if isinstance(sink.target, PostgresTarget):
        from pyspark_zurau.engine.sinks.postgres_tables import find_misfits

        for what in find_misfits(sink.target, rows.schema):
            problems.add(table, "table", what)
    _check_mode(spark, sink, rows, problems)


def _check_mode(spark: SparkSession, sink: Sink, rows: DataFrame, problems: Problems) -> None:
    """Whether a query can be streamed in this mode, which Spark otherwise tells only when it starts."""
    gateway = getattr(spark, "_jvm", None)
    if gateway is None:
        return
    if not rows.isStreaming:
        problems.add(f"sinks.{sink.name}", "from", f"{sink.origin} reads no topic: there is nothing to stream")
        return
    checker = gateway.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    mode = getattr(gateway.org.apache.spark.sql.streaming.OutputMode, sink.mode.capitalize())()
    try:
        checker.checkForStreaming(rows._jdf.queryExecution().analyzed(), mode)
    except PySparkException as error:
        problems.add(f"sinks.{sink.name}", "mode", in_words(error))
    except Py4JJavaError as error:
        problems.add(f"sinks.{sink.name}", "mode", str(error.java_exception.getMessage()).splitlines()[0])


def _check_directory(location: str, table: str, key: str, problems: Problems) -> None:
    """Whether it is there, or can be made."""
    if "://" in location:
        return
    nearest = Path(location).absolute()
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir():
        problems.add(table, key, f"{nearest} is not a directory")
    elif not os.access(nearest, os.W_OK | os.X_OK):
        problems.add(table, key, f"{nearest} cannot be written to by this user")
