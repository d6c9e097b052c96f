"""What each source and step makes of the newest records: the pipeline's own queries, run once over a sample.

Batch queries, so nothing is written and no checkpoint is made. Windows and joins see only what is in the sample.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from pyspark_zurau.arrow.columns import topic_schema
from pyspark_zurau.engine.declaration import Pipeline, Source
from pyspark_zurau.engine.failures import explain, in_words, placed
from pyspark_zurau.engine.problems import BadPipeline
from pyspark_zurau.engine.progress import Judged, example_of
from pyspark_zurau.engine.read_sources import reader_options
from pyspark_zurau.engine.sample import newest_offsets
from pyspark_zurau.engine.sources import judge, pick_good
from pyspark_zurau.engine.steps import register, run_step
from pyspark_zurau.options.read_options import FOR_STREAMS, SELECTIONS, parse_stream_options
from pyspark_zurau.options.selection import find_partitions
from pyspark_zurau.options.values import Values
from zurau.ids import TopicPartition


@dataclass(frozen=True)
class Preview:
    name: str
    #: "source" or "step".
    kind: str
    columns: tuple[str, ...] = ()
    rows: tuple[dict[str, Any], ...] = ()
    #: Of a source: how many of the sample could be read.
    judged: Judged | None = None
    #: Why there are no rows.
    reason: str | None = None


def preview(
    spark: SparkSession, pipeline: Pipeline, only: str | None, *, limit: int, records: int
) -> Iterator[Preview]:
    """Sources, then steps, each as soon as its rows are there."""
    frames: dict[str, DataFrame] = {}
    for source in pipeline.sources.values():
        with placed(pipeline.file, f"sources.{source.name}", "schema"):
            sample = read_sample(spark, source, records).persist()
            # A source that stops at the first bad value is shown the good ones too.
            frames[source.name] = register(source.name, pick_good(sample, replace(source, dead_letter="-")))
        if only in {None, source.name}:
            judged = None if source.format == "raw" else _judged(judge(sample, source).first())
            yield replace(_show(frames[source.name], source.name, "source", limit), judged=judged)
    for step in pipeline.steps.values():
        try:
            with placed(pipeline.file, f"steps.{step.name}", "sql" if step.sql else "python"):
                frames[step.name] = register(step.name, run_step(spark, pipeline.directory, step, frames))
        except BadPipeline as error:
            if only in {None, step.name}:
                yield Preview(step.name, "step", reason=error.problems[0].what)
                # Those after it may need it.
                return
        else:
            if only in {None, step.name}:
                yield _show(frames[step.name], step.name, "step", limit)


def read_sample(spark: SparkSession, source: Source, count: int) -> DataFrame:
    options = reader_options(source)
    parsed = parse_stream_options(Values(options))
    with parsed.peer.open() as cluster:
        ends = newest_offsets(cluster, find_partitions(cluster, parsed.selection), count)
    if not ends:
        return spark.createDataFrame([], topic_schema(with_headers=True))
    leave_out = {name.lower() for name in (*SELECTIONS, *FOR_STREAMS)}
    kept = {
        name: value
        for name, value in options.items()
        if name.lower() not in leave_out and not name.lower().startswith("starting")
    }
    kept |= {
        "assign": json.dumps(_by_topic(dict.fromkeys(ends), as_list=True)),
        "startingOffsets": json.dumps(_by_topic({one: start for one, (start, _) in ends.items()})),
        "endingOffsets": json.dumps(_by_topic({one: end for one, (_, end) in ends.items()})),
        "includeHeaders": "true",
    }
    return spark.read.format("zurau").options(**kept).load()


def _by_topic(values: dict[TopicPartition, Any], *, as_list: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (topic, partition), value in values.items():
        if as_list:
            found.setdefault(topic, []).append(partition)
        else:
            found.setdefault(topic, {})[str(partition)] = value
    return found


def _show(rows: DataFrame, name: str, kind: str, limit: int) -> Preview:
    try:
        found = [row.asDict(recursive=True) for row in rows.limit(limit).collect()]
    except PySparkException as error:
        reason = in_words(error) if "Traceback" not in str(error) else explain(error)
        return Preview(name, kind, tuple(rows.columns), reason=reason)
    return Preview(name, kind, tuple(rows.columns), tuple(found))


def _judged(row: Row | None) -> Judged:
    assert row is not None
    example = (
        None
        if row.example is None
        else example_of(
            row.example.topic,
            row.example.partition,
            row.example.offset,
            None if row.example.value is None else bytes(row.example.value),
        )
    )
    return Judged(row.good, row.dead, row.reason, row.dead, example)
