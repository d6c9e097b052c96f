"""How fast Spark reads a topic: our source, Spark's own Kafka connector, and the ceiling of any source in Python.

All read the same topic of the same broker into nothing (`noop`), in one session, in turns. The ceiling is a source that
has its Arrow batches ready and only hands them over: what is left then is Spark's own work. For each number of cores
there is a session of its own, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

import subjects
from measure import Spread, console, in_turns, ratio, show
from pyspark_zurau import session
from spark_connector import connector_jars
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.courier import ProducerSettings
from zurau.client.producer import Producer
from zurau.ids import TopicPartition
from zurau.records.builder import encode_record
from zurau.records.compression import Compression

PARTITIONS = 2
RECORDS_PER_BATCH = 1000
CEILING, OURS, THEIRS = "ceiling: ready Arrow batches", "format('zurau')", "format('kafka'), Spark's own"


def row_value(number: int, size: int) -> bytes:
    """A log line of that size, which compresses as log lines do."""
    line = f'{{"id": {number * 2654435761 % 2**32:010d}, "level": "INFO", "service": "till-{number % 17}", "message": "'
    words = ("request", "done", "in", str(number * 48271 % 1000), "ms", "user", str(number * 69621 % 100000))
    while len(line) < size:
        line += words[(number + len(line)) % len(words)] + " "
    return line[: size - 2].encode() + b'"}'


class Ready(InputPartition):
    """How many rows to make up."""

    def __init__(self, rows: int, size: int) -> None:
        self.rows, self.size = rows, size


class CeilingReader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._rows, self._size = int(options["rows"]), int(options["size"])

    def partitions(self) -> list[InputPartition]:
        return [Ready(self._rows // PARTITIONS, self._size) for _ in range(PARTITIONS)]

    def read(self, partition: Ready) -> Iterator[object]:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        from pyspark_zurau.columns import topic_schema

        count = max(1, min(partition.rows, (1 << 20) // partition.size))
        now_us = int(time.time() * 1e6)
        columns = [
            pa.array([b"%012d" % number for number in range(count)], pa.binary()),
            pa.array([row_value(number, partition.size) for number in range(count)], pa.binary()),
            pa.repeat(pa.scalar("topic", pa.string()), count),
            pa.repeat(pa.scalar(0, pa.int32()), count),
            pa.array(range(count), pa.int64()),
            pa.array([now_us] * count, pa.timestamp("us", tz="UTC")),
            pa.repeat(pa.scalar(0, pa.int32()), count),
        ]
        schema = to_arrow_schema(topic_schema(with_headers=False), timezone="UTC")
        ready = pa.RecordBatch.from_arrays(columns, schema=schema)
        for start in range(0, partition.rows, count):
            yield ready if start + count <= partition.rows else ready.slice(0, partition.rows - start)


class Ceiling(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ceiling"

    def schema(self) -> object:
        from pyspark_zurau.columns import topic_schema

        return topic_schema(with_headers=False)

    def reader(self, schema: object) -> DataSourceReader:  # noqa: ARG002 - there is only one
        return CeilingReader(dict(self.options))


def fill(bootstrap: str, topic: str, rows: int, size: int, codec: Compression) -> None:
    """The same batch over and over, into both partitions."""
    payload = bytearray()
    for number in range(RECORDS_PER_BATCH):
        encode_record(payload, number, 0, b"%012d" % number, row_value(number, size))
    with Cluster(bootstrap) as cluster:
        Admin(cluster).create_topic(NewTopic(topic, PARTITIONS))
        with Producer(cluster, ProducerSettings(compression=codec)) as producer:
            for batch in range(rows // RECORDS_PER_BATCH):
                producer.send_packed(TopicPartition(topic, batch % PARTITIONS), bytes(payload), RECORDS_PER_BATCH)


def read_s(spark: SparkSession, source: str, options: dict[str, str]) -> float:
    began_s = time.perf_counter()
    spark.read.format(source).options(**options).load().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began_s


def measure(cores: int, topics: list[dict[str, object]], repeats: int, jars: list[str], bootstrap: str) -> None:
    """In a process of its own: prints one line of JSON for each topic."""
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "2g"}
    if jars:
        settings["spark.jars"] = ",".join(jars)
    spark = session("bench", master=f"local[{cores}]", settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(Ceiling)
    for topic in topics:
        reading = {"kafka.bootstrap.servers": bootstrap, "subscribe": str(topic["name"])}
        made_up = {"rows": str(topic["rows"]), "size": str(topic["size"])}
        sources = {CEILING: ("ceiling", made_up), OURS: ("zurau", reading)}
        if jars:
            sources[THEIRS] = ("kafka", reading)
        for source, options in sources.values():  # Java compiles what it runs often
            read_s(spark, source, options)
        times = in_turns(list(sources), lambda name, sources=sources: read_s(spark, *sources[name]), repeats)
        print(json.dumps({name: spread.values for name, spread in times.items()}), flush=True)
    spark.stop()


def measure_apart(cores: int, topics: list[dict[str, object]], repeats: int, jars: list[Path], bootstrap: str):  # type: ignore[no-untyped-def]
    task = json.dumps([cores, topics, repeats, [str(jar) for jar in jars], bootstrap])
    command = [sys.executable, __file__, "--measure", task]
    # Python workers have to find the ceiling's module too.
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, check=True)
    lines = [line for line in answer.stdout.splitlines() if line.startswith(b"{")]
    return [{name: Spread(values) for name, values in json.loads(line).items()} for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less data and fewer repeats")
    parser.add_argument("--connector", default=pyspark.__version__, help="version of Spark's own connector")
    parser.add_argument("--token-provider", help="version of that part of it, if it is another")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(*json.loads(arguments.measure))
        return
    megabytes, repeats = (150, 3) if arguments.quick else (1000, 5)
    jars = connector_jars(arguments.connector, arguments.token_provider or arguments.connector)
    with subjects.running(subjects.ZURAU_OS) as broker:
        topics: list[dict[str, object]] = []
        for size in (100, 1000):
            for codec in (Compression.NONE, Compression.LZ4):
                rows = megabytes * 1_000_000 // size // (2 * RECORDS_PER_BATCH) * 2 * RECORDS_PER_BATCH
                topics.append({"name": f"{size}-{codec.name.lower()}", "rows": rows, "size": size})
                fill(broker.bootstrap, f"{size}-{codec.name.lower()}", rows, size, codec)
        for cores in (1, 2):
            report(cores, topics, measure_apart(cores, topics, repeats, jars, broker.bootstrap))


def report(cores: int, topics: list[dict[str, object]], found: list[dict[str, Spread]]) -> None:
    for topic, times in zip(topics, found, strict=True):
        rows = float(str(topic["rows"]))
        best = {name: rows / spread.best / 1e6 for name, spread in times.items()}
        table = {
            name: [best[name], rows / spread.median / 1e6, ratio(best[name], best[CEILING])]
            for name, spread in times.items()
        }
        title = f"{topic['name']}: million rows/s into noop, {cores} core{'s' * (cores > 1)}, {rows / 1e6:g} M rows"
        show(title, ["best", "median", "best, ceiling = 1"], table)
    console.print()


if __name__ == "__main__":
    main()
