"""A source as frames: its good rows, which SQL knows by its name, and its dead letters.

Good rows and dead letters are two queries that read the same records and judge them alike, so each record is in exactly
one of them, whatever happens to either query and however often it starts again. It costs that values are parsed once
more; in return each query has its own checkpoint, and a slow sink holds up no dead letter.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructField, StructType

from pyspark_zurau.arrow.columns import COLUMNS
from pyspark_zurau.engine.declaration import FAIL, Source, TopicTarget
from pyspark_zurau.engine.formats import Parser, parser_for
from pyspark_zurau.engine.read_sources import reader_options
from pyspark_zurau.engine.real_time import read_in_real_time
from pyspark_zurau.engine.times import needs_record_time
from pyspark_zurau.options.values import Values
from zurau.client.security import is_about_security

NO_VALUE = "there is no value (a tombstone)"
PARSED = "_zurau_parsed"
TIMES = "_zurau_times"
#: What the query of the dead letters observes about all records, under this name in Spark's progress.
JUDGED = "zurau_judged"
EXAMPLE_BYTES = 60
MOST = "maxOffsetsPerTrigger"
#: About a second of work for a core that parses JSON.
PER_CORE = 250_000
#: A Spark Connect server does not tell how many it has.
CORES_UNKNOWN = 4


def good_rows(spark: SparkSession, source: Source, *, real_time: bool = False) -> DataFrame:
    read = read_in_real_time if real_time else _read
    rows = pick_good(read(spark, source, _needed_columns(source)), source)
    return rows.withWatermark(source.watermark.column, source.watermark.delay) if source.watermark else rows


def dead_letters(spark: SparkSession, source: Source) -> DataFrame:
    time = ("timestamp",) if needs_record_time(source.time_format) else ()
    return pick_dead(_read(spark, source, ("key", "value", "topic", "partition", "offset", *time, "headers")), source)


def dead_letter_target(source: Source) -> TopicTarget:
    """In the same cluster, and reached with the same credentials."""
    secure = {
        name: value
        for name, value in source.options.items()
        if name.lower().startswith("kafka.") and is_about_security(name.lower().removeprefix("kafka."))
    }
    return TopicTarget(source.bootstrap, source.dead_letter, "raw", None, secure)


def pick_good(records: DataFrame, source: Source) -> DataFrame:
    """From records to rows with the columns of the format."""
    if source.null_values == "skip":
        records = records.where(F.col("value").isNotNull())
    if source.format == "raw":
        return records
    parser = parser_for(source)
    rows = _parse(records, parser)
    dead = _is_dead(source, parser)
    if source.dead_letter == FAIL:
        rows = rows.where(F.when(dead, _raise(source, parser)).otherwise(F.lit(True)))
    else:
        rows = rows.where(~dead)
    record = [F.col(name).alias(f"_{name}") for name in source.record]
    return rows.select(*_columns(parser), *record)


def pick_dead(records: DataFrame, source: Source) -> DataFrame:
    """Rows for the topic sink: key and value as they were; headers tell where they are from and what is wrong."""
    parser = parser_for(source)
    rows = _parse(records, parser).observe(JUDGED, *_judgement(source, parser)).where(_is_dead(source, parser))
    told = {
        "zurau.reason": _reason(parser),
        "zurau.source": F.lit(source.name),
        "zurau.topic": F.col("topic"),
        "zurau.partition": F.col("partition"),
        "zurau.offset": F.col("offset"),
    }
    headers = [
        F.struct(F.lit(name).alias("key"), column.cast("string").cast("binary").alias("value"))
        for name, column in told.items()
    ]
    own = F.coalesce(F.col("headers"), F.array().cast(COLUMNS["headers"]))
    return rows.select("key", "value", F.concat(own, F.array(*headers)).alias("headers"))


def judge(records: DataFrame, source: Source) -> DataFrame:
    """One row: how many are good and how many dead, as the query of the dead letters observes it."""
    parser = parser_for(source)
    return _parse(records, parser).agg(*_judgement(source, parser))


def _judgement(source: Source, parser: Parser) -> list[Column]:
    """Counts the good and the dead; of the dead the reason seen most, and the first one as an example."""
    dead = _is_dead(source, parser)
    counted = F.col("value").isNotNull() if source.null_values == "skip" else F.lit(True)
    example = F.struct("topic", "partition", "offset", F.substring("value", 1, EXAMPLE_BYTES).alias("value"))
    return [
        F.count_if(counted & ~dead).alias("good"),
        F.count_if(dead).alias("dead"),
        F.mode(F.when(dead, _reason(parser))).alias("reason"),
        F.min(F.when(dead, example)).alias("example"),
    ]


def _needed_columns(source: Source) -> tuple[str, ...]:
    """What is not asked for is not even copied."""
    if source.format == "raw":
        return tuple(COLUMNS)
    place = ("topic", "partition", "offset") if source.dead_letter == FAIL else ()
    time = ("timestamp",) if needs_record_time(source.time_format) else ()
    return tuple(name for name in COLUMNS if name in {"value", *source.record, *place, *time})


def _parse(records: DataFrame, parser: Parser) -> DataFrame:
    """With one more column. Through a list of one, else Spark would parse anew wherever the column is used."""
    rows = records.select("*", F.explode(F.array(parser.parse(F.col("value")))).alias(PARSED))
    if parser.times is None:
        return rows
    return rows.select("*", F.explode(F.array(parser.times.read(F.col(PARSED)))).alias(TIMES))


def _columns(parser: Parser) -> list[Column]:
    columns = parser.columns(F.col(PARSED))
    times = {name: F.col(TIMES)[name] for name in (parser.times.types if parser.times else ())}
    return [column.alias(name) for name, column in (columns | times).items()]


def _is_dead(source: Source, parser: Parser) -> Column:
    value, parsed = F.col("value"), F.col(PARSED)
    tombstone = F.lit(source.null_values == "dead_letter")
    bad = parser.is_bad(parsed, value)
    if parser.times is not None:
        bad |= parser.times.are_bad(parsed, F.col(TIMES))
    return F.when(value.isNull(), tombstone).otherwise(bad)


def _reason(parser: Parser) -> Column:
    value, parsed = F.col("value"), F.col(PARSED)
    reason = parser.reason(parsed, value)
    if parser.times is not None:
        reason = F.coalesce(reason, parser.times.reason(parsed, F.col(TIMES)))
    return F.when(value.isNull(), F.lit(NO_VALUE)).otherwise(reason)


def _raise(source: Source, parser: Parser) -> Column:
    text = F.concat(
        F.lit(f"source {source.name}: "),
        F.concat_ws(" ", F.col("topic"), F.lit("partition"), F.col("partition"), F.lit("offset"), F.col("offset")),
        F.lit(": "),
        _reason(parser),
        F.lit("; name a topic in dead_letter to go on past such records"),
    )
    return F.raise_error(text).cast("boolean")


def _read(spark: SparkSession, source: Source, columns: tuple[str, ...]) -> DataFrame:
    schema = StructType([StructField(name, COLUMNS[name]) for name in columns])
    options = reader_options(source)
    if MOST not in Values(options):
        options[MOST] = str(records_per_batch(spark))
    return spark.readStream.format("zurau").options(**options).schema(schema).load()


def records_per_batch(spark: SparkSession) -> int:
    """How many a batch of a source takes at most where nothing is said: so that first results of a long topic are soon
    there, and no batch is too large for memory."""
    context = getattr(spark, "_sc", None)
    return PER_CORE * (CORES_UNKNOWN if context is None else context.defaultParallelism)
