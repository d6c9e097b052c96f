"""A sink as a running query: its kind's way of writing, with its mode, trigger and checkpoint."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from pyspark_zurau.engine.declaration import (
    ConsoleTarget,
    DeltaTarget,
    IcebergTarget,
    ParquetTarget,
    PostgresTarget,
    Sink,
    TopicTarget,
    Trigger,
)
from pyspark_zurau.engine.sinks.console import ConsoleBatches
from pyspark_zurau.engine.sinks.parquet import ParquetBatches
from pyspark_zurau.engine.sinks.topic import write_topic
from pyspark_zurau.spark.checkpoint_lock import local_path

EachBatch = Callable[[DataFrame, int], None]


def start_sink(rows: DataFrame, sink: Sink, checkpoint: str) -> StreamingQuery:
    if isinstance(sink.target, TopicTarget):
        writer = write_topic(rows, sink.target, sink.mode, real_time=bool(sink.trigger.real_time))
    else:
        writer = rows.writeStream.outputMode(sink.mode).foreachBatch(batches(sink, checkpoint))
    return start(writer, sink.name, sink.trigger, checkpoint)


def remove_half_written(checkpoint: str) -> None:
    """What Spark was about to note in a checkpoint when it was killed. With such files in it, and no batch, Spark takes
    the checkpoint for somebody else's and refuses to begin (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY)."""
    directory = local_path(checkpoint)
    if directory is not None:  # stores of objects have all of a file or nothing
        for notes in ("offsets", "commits"):
            for file in (directory / notes).glob(".*.tmp*"):
                file.unlink(missing_ok=True)


def clean_up(spark: SparkSession, sink: Sink, checkpoint: str) -> None:
    """After the end of the sink's query."""
    if isinstance(sink.target, PostgresTarget):
        from pyspark_zurau.engine.sinks.postgres import clean_up as drop_waiting

        drop_waiting(spark, sink.target, checkpoint)


def start(writer: DataStreamWriter, name: str, trigger: Trigger, checkpoint: str) -> StreamingQuery:
    remove_half_written(checkpoint)
    writer = writer.queryName(name).option("checkpointLocation", checkpoint)
    if trigger.real_time:
        in_real_time: DataStreamWriter = writer.trigger(realTime=trigger.real_time)  # type: ignore[call-overload]
        return in_real_time.start()
    if trigger.available_now:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=trigger.every).start()


def batches(sink: Sink, checkpoint: str) -> EachBatch:
    match sink.target:
        case ParquetTarget():
            return ParquetBatches(sink.target, checkpoint)
        case ConsoleTarget():
            return ConsoleBatches(sink.name, sink.target.rows)
        case DeltaTarget():
            from pyspark_zurau.engine.sinks.delta import DeltaBatches

            return DeltaBatches(sink.target, sink.mode, checkpoint)
        case IcebergTarget():
            from pyspark_zurau.engine.sinks.iceberg import IcebergBatches

            return IcebergBatches(sink.target, sink.mode, checkpoint)
        case PostgresTarget():
            from pyspark_zurau.engine.sinks.postgres import PostgresBatches

            return PostgresBatches(sink.target, sink.mode, sink.name, checkpoint)
        case TopicTarget():
            raise AssertionError("topics are streamed to")
