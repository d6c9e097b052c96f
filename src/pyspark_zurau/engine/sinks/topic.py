"""Rows to a topic, at least once: as JSON with one column as the key, or in the columns of the data source."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.readwriter import DataStreamWriter

from pyspark_zurau.engine.declaration import TopicTarget
from pyspark_zurau.options.values import Values
from pyspark_zurau.writing.each_batch import write_each_batch
from pyspark_zurau.writing.sink import KEEP_TIMESTAMPS, TYPES
from zurau.errors import SettingsError


def write_topic(rows: DataFrame, target: TopicTarget, mode: str, *, real_time: bool = False) -> DataStreamWriter:
    shaped, options = shape(rows, target), writer_options(target)
    if real_time:  # Spark's own connector; a row that is only added is an update too
        return shaped.writeStream.format("kafka").options(**options).outputMode("update")
    if mode == "append":
        return shaped.writeStream.format("zurau").options(**options)
    return shaped.writeStream.outputMode(mode).foreachBatch(write_each_batch(options))


def writer_options(target: TopicTarget) -> dict[str, str]:
    options = {"kafka.bootstrap.servers": target.bootstrap, **target.options}
    return options | {"topic": target.topic} if target.topic else options


def shape(rows: DataFrame, target: TopicTarget) -> DataFrame:
    """The columns that the data source knows."""
    if target.format == "raw":
        known = {*TYPES, "timestamp"} if KEEP_TIMESTAMPS in Values(target.options) else {*TYPES}
        return rows.select(*[name for name in rows.columns if name in known])
    if target.key is not None and target.key not in rows.columns:
        raise SettingsError(f"there is no column {target.key!r} for the key; there is {', '.join(rows.columns)}")
    value = F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("value")
    if target.key is None:
        return rows.select(value)
    binary = dict(rows.dtypes)[target.key] == "binary"
    key = F.col(target.key) if binary else F.col(target.key).cast("string")
    return rows.select(key.alias("key"), value)
