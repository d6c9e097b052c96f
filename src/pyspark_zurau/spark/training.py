"""A bit of everything that pipelines do with Spark, so that Java loads the classes of it; `class_archive.py` runs this.

Arguments: options for Java, and a directory to work in.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from pyspark_zurau.spark.class_archive import JAVA_OPTIONS
from pyspark_zurau.spark.session import session

ROWS = 100
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.port": "0",
}
QUERY = """
SELECT window.start AS minute, word, count(*) AS times, avg(size) AS size
FROM said GROUP BY window(time, '1 minute'), word
"""


class Rows(DataSource):
    """Two columns of a few rows, as a batch and as a stream of one batch."""

    @classmethod
    def name(cls) -> str:
        return "training"

    def schema(self) -> str:
        return "value binary, timestamp timestamp"

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002 - there is only one
        return BatchOfRows()

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return StreamOfRows()


def rows() -> Iterator[Any]:
    import pyarrow as pa

    schema = pa.schema([("value", pa.binary()), ("timestamp", pa.timestamp("us", tz="UTC"))])
    values = [b'{"word": "w%d", "size": %d}' % (number % 7, number) for number in range(ROWS)]
    times = pa.array([number * 1_000_000 for number in range(ROWS)], schema.field("timestamp").type)
    yield pa.RecordBatch.from_arrays([pa.array(values, pa.binary()), times], schema=schema)


class BatchOfRows(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0), InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002
        return rows()


class StreamOfRows(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"rows": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: ARG002, N802
        return {"rows": ROWS}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(0)] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002
        return rows()


def run(spark: SparkSession, directory: Path) -> None:
    spark.dataSource.register(Rows)
    spark.read.format("training").load().groupBy("timestamp").count().orderBy("timestamp").collect()
    stream = spark.readStream.format("training").load()
    said = stream.selectExpr("from_json(string(value), 'word STRING, size INT') AS said", "timestamp AS time")
    said.select("said.*", "time").withWatermark("time", "1 minute").createOrReplaceTempView("said")
    writer = spark.sql("SELECT word, size, time, date(time) AS day FROM said WHERE size > 1").writeStream
    writer = writer.format("parquet").partitionBy("day").option("path", str(directory / "lake"))
    finish(writer.option("checkpointLocation", str(directory / "rows")))
    counts = spark.sql(QUERY).writeStream.outputMode("update").foreachBatch(_collect)
    finish(counts.option("checkpointLocation", str(directory / "counts")))
    spark.read.parquet(str(directory / "lake")).selectExpr("max(size)", "count(DISTINCT word)").toArrow()


def _collect(batch: DataFrame, _: int) -> None:
    batch.persist()
    batch.collect()
    batch.unpersist()


def finish(writer: Any) -> None:
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()


def main() -> None:
    options, directory = sys.argv[1:]
    spark = session("zurau-training", master="local[2]", settings=SETTINGS | {JAVA_OPTIONS: options})
    run(spark, Path(directory))
    spark.stop()


if __name__ == "__main__":
    main()
