"""How fast Spark reads a topic: our source, Spark's own Kafka connector, and the ceiling of any source in Python.

All read the same topic of the same broker into nothing (`noop`), in one session, in turns. The ceiling is a source that
has its Arrow batches ready and only hands them over: what is left then is Spark's own work. For each number of cores
there is a session of its own, in a process of its own. CPU is that of Spark and its Python workers; the broker's, which
the ceiling does not need, is told beside it. Where all cores are busy, CPU decides: the last column is how far one gets
with what the ceiling spends, the broker's part counted in. It depends less on what else runs than times do. The last
table is the latency of streams, from spark_latency.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import spark_latency
import subjects
from measure import Spread, console, ratio, show, tree_cpu_s
from pyspark_zurau import session
from spark_ceiling import PARTITIONS, Ceiling, row_value
from spark_connector import connector_jars
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.producer import Producer, ProducerSettings
from zurau.ids import TopicPartition
from zurau.records.builder import encode_record
from zurau.records.compression import Compression

RECORDS_PER_BATCH = 1000
CEILING, OURS, THEIRS = "ceiling: ready Arrow batches", "format('zurau')", "format('kafka'), Spark's own"


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


class Reading:
    """One way to read a topic into nothing, and what it took, time after time."""

    def __init__(self, spark: SparkSession, source: str, options: dict[str, str], broker: int) -> None:
        self._frame = spark.read.format(source).options(**options)
        self._pids: tuple[int, int] = (spark.sparkContext._gateway.proc.pid, broker)
        #: Of each time: how long it took, Spark's CPU, the broker's CPU.
        self.seconds: list[tuple[float, float, float]] = []

    def read(self) -> None:
        began_s, began_cpu_s = time.perf_counter(), [tree_cpu_s(pid) for pid in self._pids]
        self._frame.load().write.format("noop").mode("overwrite").save()
        took_s = time.perf_counter() - began_s
        spark_s, broker_s = (tree_cpu_s(pid) - began for pid, began in zip(self._pids, began_cpu_s, strict=True))
        self.seconds.append((took_s, spark_s, broker_s))


def measure(
    cores: int, topics: list[dict[str, object]], repeats: int, jars: list[str], bootstrap: str, broker: int
) -> None:
    """In a process of its own: prints one line of JSON for each topic."""
    spark = bench_session(cores, jars)
    for topic in topics:
        reading = {"kafka.bootstrap.servers": bootstrap, "subscribe": str(topic["name"])}
        made_up = {"rows": str(topic["rows"]), "size": str(topic["size"])}
        ways = {CEILING: Reading(spark, "ceiling", made_up, broker), OURS: Reading(spark, "zurau", reading, broker)}
        if jars:
            ways[THEIRS] = Reading(spark, "kafka", reading, broker)
        for _ in range(repeats + 1):  # in turns; the first round is for Java, which compiles what it runs often
            for way in ways.values():
                way.read()
        found = {name: list(zip(*way.seconds[1:], strict=True)) for name, way in ways.items()}
        print(json.dumps(found), flush=True)
    spark.stop()


def bench_session(cores: int, jars: list[str]) -> SparkSession:
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.sql.session.timeZone": "UTC"}
    if jars:
        settings["spark.jars"] = ",".join(jars)
    spark = session("bench", master=f"local[{cores}]", settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(Ceiling)
    return spark


def apart(task: list[object]) -> list[dict[str, list[list[float]]]]:
    """What a process of its own prints, line by line."""
    command = [sys.executable, __file__, "--apart", json.dumps(task)]
    # Python workers have to find the ceiling's module too.
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    answer = subprocess.run(command, capture_output=True, env=environment, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"Spark did not get to its end:\n{answer.stderr.decode()[-4000:]}")
    return [json.loads(line) for line in answer.stdout.splitlines() if line.startswith(b"{")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less data and fewer repeats")
    parser.add_argument("--megabytes", type=int, help="how much each topic holds; default 1000, or 150 with --quick")
    parser.add_argument("--cores", type=int, nargs="*", default=[1, 2], help="none: only the latency of streams")
    parser.add_argument("--no-latency", action="store_true", help="only reading")
    parser.add_argument("--connector", default=pyspark.__version__, help="version of Spark's own connector")
    parser.add_argument("--token-provider", help="version of that part of it, if it is another")
    parser.add_argument("--apart", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.apart:
        what, *task = json.loads(arguments.apart)
        {"reading": measure, "latency": measure_latency}[what](*task)
        return
    megabytes, repeats = (150, 3) if arguments.quick else (1000, 5)
    megabytes = arguments.megabytes or megabytes
    found = connector_jars(arguments.connector, arguments.token_provider or arguments.connector)
    jars = [str(jar) for jar in found]
    console.print(f"load average {os.getloadavg()[0]:.1f}\n")
    with subjects.running(subjects.ZURAU_OS) as broker:
        topics: list[dict[str, object]] = []
        for size in (100, 1000):
            for codec in (Compression.NONE, Compression.LZ4):
                rows = megabytes * 1_000_000 // size // (2 * RECORDS_PER_BATCH) * 2 * RECORDS_PER_BATCH
                topics.append({"name": f"{size}-{codec.name.lower()}", "rows": rows, "size": size})
                fill(broker.bootstrap, f"{size}-{codec.name.lower()}", rows, size, codec)
        for cores in arguments.cores:
            report(cores, topics, apart(["reading", cores, topics, repeats, jars, broker.bootstrap, broker.pid]))
        if arguments.no_latency:
            return
        turns, turn_s = (2, 10) if arguments.quick else (4, 20)
        (latencies,) = apart(["latency", turns, turn_s, jars, broker.bootstrap])
        spark_latency.report(latencies)


def measure_latency(turns: int, turn_s: int, jars: list[str], bootstrap: str) -> None:
    sources = {CEILING: "ceiling", OURS: "zurau"} | ({THEIRS: "kafka"} if jars else {})
    print(json.dumps(spark_latency.measure(bench_session(2, jars), sources, bootstrap, turns, turn_s)), flush=True)


def least_sum(first: Spread, second: Spread) -> float:
    """Of the repeats, the one in which both together took least."""
    return min(one + other for one, other in zip(first.values, second.values, strict=True))


def report(cores: int, topics: list[dict[str, object]], found: list[dict[str, list[list[float]]]]) -> None:
    for topic, measured in zip(topics, found, strict=True):
        millions = float(str(topic["rows"])) / 1e6
        times = {name: [Spread(seconds) for seconds in all_seconds] for name, all_seconds in measured.items()}
        ceiling, ceiling_cpu_s = millions / times[CEILING][0].best, times[CEILING][1].best
        table = {
            name: [
                millions / wall.best,
                millions / wall.median,
                ratio(millions / wall.best, ceiling),
                cpu.median / millions,
                broker_cpu.median / millions,
                ratio(ceiling_cpu_s, least_sum(cpu, broker_cpu) if name != CEILING else ceiling_cpu_s),
            ]
            for name, (wall, cpu, broker_cpu) in times.items()
        }
        title = f"{topic['name']}: million rows/s into noop, {cores} core{'s' * (cores > 1)}, {millions:g} M rows"
        show(title, ["best", "median", "best, ceiling = 1", "CPU s/M rows", "broker's", "by CPU, ceiling = 1"], table)
    console.print()


if __name__ == "__main__":
    main()
