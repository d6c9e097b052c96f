"""From a record's timestamp to the sink: how long a streaming query takes, with each source.

One record every few milliseconds, written by a producer that waits for nothing. The sink notes for every record how old
it is when its batch has arrived in Python. Sources take turns; the beginning of each turn does not count.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from measure import percentile, show
from spark_ceiling import ROW_INTERVAL_MS
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.producer import Producer, ProducerSettings

TOPIC = "latency"
WARM_UP_S = 5


@contextmanager
def steady_records(bootstrap: str, topic: str, make_value: Callable[[], bytes]) -> Iterator[None]:
    """One record every few milliseconds, as long as the block lasts."""
    enough = threading.Event()

    def produce() -> None:
        with Cluster(bootstrap) as cluster, Producer(cluster, ProducerSettings(linger_s=0.0)) as producer:
            while not enough.wait(ROW_INTERVAL_MS / 1000):
                producer.send(topic, make_value(), partition=0)
                producer.poll()

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def measure(
    spark: SparkSession, sources: dict[str, str], bootstrap: str, turns: int, turn_s: int
) -> dict[str, list[float]]:
    """Ages of records in milliseconds, by source."""
    with Cluster(bootstrap) as cluster:
        Admin(cluster).create_topic(NewTopic(TOPIC, 1))
    ages: dict[str, list[float]] = {name: [] for name in sources}
    with steady_records(bootstrap, TOPIC, lambda: b"x" * 100):
        for _ in range(turns):
            for name, source in sources.items():
                ages[name] += one_turn(spark, source, bootstrap, turn_s)
    return ages


def one_turn(spark: SparkSession, source: str, bootstrap: str, turn_s: int) -> list[float]:
    ages: list[float] = []
    first_s: list[float] = []

    def note(rows: DataFrame, _batch: int) -> None:
        made = rows.selectExpr("unix_millis(timestamp) AS ms").toArrow()["ms"].to_pylist()
        now_s = time.time()
        if made and not first_s:
            first_s.append(now_s)
        if first_s and now_s > first_s[0] + WARM_UP_S:
            ages.extend(now_s * 1000 - ms for ms in made)

    options: dict[str, Any] = {"kafka.bootstrap.servers": bootstrap, "subscribe": TOPIC}
    frame = spark.readStream.format(source).options(**options if source != "ceiling" else {}).load()
    with tempfile.TemporaryDirectory(prefix="zurau-bench-") as checkpoint:
        query = frame.writeStream.foreachBatch(note).option("checkpointLocation", checkpoint).start()
        while not first_s:
            query.awaitTermination(1)
        query.awaitTermination(turn_s + WARM_UP_S)
        query.stop()
    return ages


def report(ages: dict[str, list[float]], way: str = "a record's timestamp to the sink, batches without pause") -> None:
    table = {name: [percentile(found, 0.5), percentile(found, 0.99), len(found)] for name, found in ages.items()}
    show(f"ms from {way}, a record every {ROW_INTERVAL_MS} ms", ["p50", "p99", "records"], table)
