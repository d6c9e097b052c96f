"""From topic to topic through Spark: how old a record is when a consumer has it at the other end.

One record every few milliseconds. Spark copies it: in real-time mode with its own Kafka connector, in batches without
pause with the same, and in batches with our source and sink. The ways take turns; the beginning of each turn does not
count. What batches and records cost is told too: it decides how old they get on a machine that has no core to spare.
In real time a batch lasts from checkpoint to checkpoint, which is longer than a turn, so there are none to count.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import subjects
from measure import console, show, tree_cpu_s
from spark_connector import connector_jars
from spark_latency import WARM_UP_S, report, steady_records
from spark_source import bench_session
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.ids import TopicPartition

#: More threads than cores: a task in real-time mode keeps one for itself.
SLOTS = 6
#: The connector, and its trigger.
WAYS = {
    "real time, Spark's own": ("kafka", {"realTime": "5 minutes"}),
    "batches, Spark's own": ("kafka", {"processingTime": "0 seconds"}),
    "batches, ours": ("zurau", {"processingTime": "0 seconds"}),
}


def copy(spark: SparkSession, way: str, bootstrap: str, source: str, target: str, checkpoint: str) -> StreamingQuery:
    connector, trigger = WAYS[way]
    place = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.readStream.format(connector).options(**place).option("subscribe", source).load().select("value")
    writer = rows.writeStream.format(connector).options(**place).option("topic", target)
    if "realTime" in trigger:
        writer = writer.outputMode("update")
    return writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()


def one_turn(spark: SparkSession, way: str, bootstrap: str, name: str, turn_s: float) -> tuple[list[float], float, int]:
    """Ages in milliseconds, seconds of CPU, and batches."""
    java = spark.sparkContext._gateway.proc.pid
    source, target = f"{name}-in", f"{name}-out"
    with Cluster(bootstrap) as cluster, tempfile.TemporaryDirectory(prefix="zurau-bench-") as checkpoint:
        for topic in (source, target):
            Admin(cluster).create_topic(NewTopic(topic, 1))
        moments = steady_records(bootstrap, source, lambda: b"%d" % time.time_ns())
        with moments, Consumer(cluster) as consumer:
            query = copy(spark, way, bootstrap, source, target, checkpoint)
            consumer.assign({TopicPartition(target, 0): 0})
            ages: list[float] = []
            first_s, began_cpu_s, began_batch = float("inf"), 0.0, 0
            while time.monotonic() < first_s + WARM_UP_S + turn_s:
                if query.exception() is not None:
                    raise SystemExit(f"{way}: {query.exception()}")
                for _, records, _ in consumer.poll(1.0):
                    now_ns = time.time_ns()
                    first_s = min(first_s, time.monotonic()) if records else first_s
                    if time.monotonic() > first_s + WARM_UP_S:
                        if not ages:
                            began_cpu_s, began_batch = tree_cpu_s(java), last_batch(query)
                        ages += [(now_ns - int(record.value or b"0")) / 1e6 for record in records]
            cpu_s, batches = tree_cpu_s(java) - began_cpu_s, last_batch(query) - began_batch
            query.stop()
    return ages, cpu_s, batches


def last_batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return progress.batchId if progress else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter turns")
    parser.add_argument("--connector", default="4.2.0", help="version of Spark's own connector")
    parser.add_argument("--token-provider", default="4.0.0", help="version of that part of it")
    arguments = parser.parse_args()
    jars = [str(jar) for jar in connector_jars(arguments.connector, arguments.token_provider)]
    if not jars:
        raise SystemExit("real-time mode needs Spark's own connector")
    turns, turn_s = (1, 15) if arguments.quick else (3, 30)
    console.print(f"load average {os.getloadavg()[0]:.1f}\n")
    with subjects.running(subjects.ZURAU_OS) as broker:
        spark = bench_session(SLOTS, jars)
        ages: dict[str, list[float]] = {way: [] for way in WAYS}
        cpu_s, batches = dict.fromkeys(WAYS, 0.0), dict.fromkeys(WAYS, 0)
        for turn in range(turns):
            for number, way in enumerate(WAYS):
                found = one_turn(spark, way, broker.bootstrap, f"turn-{turn}-{number}", turn_s)
                ages[way] += found[0]
                cpu_s[way] += found[1]
                batches[way] += found[2]
        spark.stop()
    report(ages, "topic to topic")
    cost = {
        way: [
            batches[way],
            cpu_s[way] * 1000 / batches[way] if batches[way] else "-",
            cpu_s[way] * 1000 / len(ages[way]) if ages[way] else "-",
        ]
        for way in WAYS
    }
    show("what it costs Spark and its Python processes", ["batches", "CPU ms a batch", "CPU ms a record"], cost)


if __name__ == "__main__":
    main()
