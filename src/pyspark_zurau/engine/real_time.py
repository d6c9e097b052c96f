"""Spark's real-time mode: tasks keep running and hand on each record as it comes, instead of batch after batch.

Spark offers it to sources in Java only, so good rows are read, and topics written, by Spark's own Kafka connector,
whose jars are the user's; to it a broker of ours is a Kafka. Dead letters stay a query in batches, on our own source:
nobody waits for them by the millisecond.
"""

from __future__ import annotations

import os
import re

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from pyspark_zurau.engine.declaration import Pipeline, Source
from pyspark_zurau.engine.read_sources import reader_options
from pyspark_zurau.engine.topics import partition_counts
from zurau.errors import SettingsError

NO_CONNECTOR = (
    "real_time needs Spark's own Kafka connector, which is not a part of Spark. Let Spark fetch it, in the file: "
    '[spark] jars.packages = "org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION", with the version of your Spark; or '
    'name the jars: jars = "spark-sql-kafka-0-10_2.13-VERSION.jar,..."; docs/spark.md (Real time) has the list'
)
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
#: For the queries of dead letters, which come and go.
SPARE_SLOTS = 2


def read_in_real_time(spark: SparkSession, source: Source, columns: tuple[str, ...]) -> DataFrame:
    options = reader_options(source)
    if "headers" in columns:
        options["includeHeaders"] = "true"
    try:
        return spark.readStream.format("kafka").options(**options).load().select(*columns)
    except AnalysisException as error:
        if error.getCondition() == "KAFKA_DATA_SOURCE_NOT_ENABLED":
            raise SettingsError(NO_CONNECTOR) from None
        raise


def slots(pipeline: Pipeline, shuffle_partitions: int) -> int:
    """How many tasks run at once: one for each partition that a query reads, and of each shuffle, all the time."""
    by_source = [
        sum(
            count
            for topic, count in partition_counts(source).items()
            if topic in source.topics or (source.topic_pattern and re.fullmatch(source.topic_pattern, topic))
        )
        for source in pipeline.sources.values()
    ]
    needed = len(pipeline.sinks) * (sum(by_source) + shuffle_partitions) + SPARE_SLOTS
    return max(needed, os.cpu_count() or 1)
