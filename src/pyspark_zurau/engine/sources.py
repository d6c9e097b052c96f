"""A source as frames: its good rows, which SQL knows by its name, and its dead letters.

Good rows and dead letters are two queries that read the same records and judge them alike, so each record is in exactly
one of them, whatever happens to either query and however often it starts again. It costs that values are parsed once
more; in return each query has its own checkpoint, and a slow sink holds up no dead letter.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructField, StructType

from pyspark_zurau.columns import COLUMNS
from pyspark_zurau.engine.declaration import FAIL, Source
from pyspark_zurau.engine.formats import Parser, parser_for
from pyspark_zurau.engine.read_sources import reader_options

NO_VALUE = "there is no value (a tombstone)"
PARSED = "_zurau_parsed"


def good_rows(spark: SparkSession, source: Source) -> DataFrame:
    if source.format == "raw":
        rows = _read(spark, source, tuple(COLUMNS))
        rows = rows.where(F.col("value").isNotNull()) if source.null_values == "skip" else rows
    else:
        rows = _parse(spark, source, parser_for(source))
    return rows.withWatermark(source.watermark.column, source.watermark.delay) if source.watermark else rows


def dead_letters(spark: SparkSession, source: Source) -> DataFrame:
    """Rows for the topic sink: key and value as they were; headers tell where they are from and what is wrong."""
    parser = parser_for(source)
    rows = _read(spark, source, ("key", "value", "topic", "partition", "offset", "headers"))
    rows = rows.withColumn(PARSED, parser.parse(F.col("value")))
    rows = rows.where(_is_dead(source, parser))
    value, parsed = F.col("value"), F.col(PARSED)
    reason = F.when(value.isNull(), F.lit(NO_VALUE)).otherwise(parser.reason(parsed, value))
    told = {
        "zurau.reason": reason,
        "zurau.source": F.lit(source.name),
        "zurau.topic": F.col("topic"),
        "zurau.partition": F.col("partition"),
        "zurau.offset": F.col("offset"),
    }
    headers = F.array(
        *[
            F.struct(F.lit(name).alias("key"), column.cast("string").cast("binary").alias("value"))
            for name, column in told.items()
        ]
    )
    own = F.coalesce(F.col("headers"), F.array().cast(COLUMNS["headers"]))
    return rows.select("key", "value", F.concat(own, headers).alias("headers"))


def _parse(spark: SparkSession, source: Source, parser: Parser) -> DataFrame:
    fails = source.dead_letter == FAIL
    wanted = {"value", *source.record, *(("topic", "partition", "offset") if fails else ())}
    rows = _read(spark, source, tuple(name for name in COLUMNS if name in wanted))
    rows = rows.withColumn(PARSED, parser.parse(F.col("value")))
    if source.null_values == "skip":
        rows = rows.where(F.col("value").isNotNull())
    dead = _is_dead(source, parser)
    rows = rows.where(F.when(dead, _raise(source, parser)).otherwise(F.lit(True))) if fails else rows.where(~dead)
    record = [F.col(name).alias(f"_{name}") for name in source.record]
    return rows.select(*parser.columns(F.col(PARSED)), *record)


def _is_dead(source: Source, parser: Parser) -> Column:
    value, parsed = F.col("value"), F.col(PARSED)
    tombstone = F.lit(source.null_values == "dead_letter")
    return F.when(value.isNull(), tombstone).otherwise(parser.is_bad(parsed, value))


def _raise(source: Source, parser: Parser) -> Column:
    value, parsed = F.col("value"), F.col(PARSED)
    reason = F.when(value.isNull(), F.lit(NO_VALUE)).otherwise(parser.reason(parsed, value))
    text = F.concat(
        F.lit(f"source {source.name}: "),
        F.concat_ws(" ", F.col("topic"), F.lit("partition"), F.col("partition"), F.lit("offset"), F.col("offset")),
        F.lit(": "),
        reason,
        F.lit("; name a topic in dead_letter to go on past such records"),
    )
    return F.raise_error(text).cast("boolean")


def _read(spark: SparkSession, source: Source, columns: tuple[str, ...]) -> DataFrame:
    schema = StructType([StructField(name, COLUMNS[name]) for name in columns])
    return spark.readStream.format("zurau").options(**reader_options(source)).schema(schema).load()
