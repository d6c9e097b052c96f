"""A broker, topics with records in them, and one Spark session for everybody: starting one takes seconds."""

from __future__ import annotations

import fcntl
import importlib.util
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Tests import by plain names what is kept here, and what starts brokers as processes there.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "compatibility")]

from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.client.offsets import end_offsets, start_offsets
from zurau.client.producer import Producer, ProducerSettings
from zurau.errors import ZurauError
from zurau.ids import TopicPartition
from zurau.records.compression import Compression
from zurau.records.record import Record
from zurau.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import StreamingQuery

MISSING = [name for name in ("pyspark", "pyarrow") if importlib.util.find_spec(name) is None]
PATIENCE_S = 60.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where Spark cannot be had, say so once for each test."""
    if MISSING:
        skip = pytest.mark.skip(reason=f"{' and '.join(MISSING)} not installed: pip install 'zurau[spark]'")
        for item in items:
            if item.path.is_relative_to(__file__.removesuffix("conftest.py")):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    # Nothing expires: some tests write records of long ago.
    with Broker(auto_create_topics_enable=False, retention_ms=-1) as broker:
        yield broker


@pytest.fixture(scope="session")
def cluster(broker: Broker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: Cluster) -> Admin:
    return Admin(cluster)


@pytest.fixture
def unique() -> Callable[[str], str]:
    return lambda word: f"{word}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def new_topic(admin: Admin, unique: Callable[[str], str]) -> Callable[..., str]:
    """Makes a topic of one's own, with some partitions."""
    return lambda partitions=1, word="topic", **settings: (
        admin.create_topic(NewTopic(unique(word), partitions, settings=settings)).name
    )


@pytest.fixture
def produce(cluster: Cluster) -> Callable[..., None]:
    """Writes values to a topic, in a batch of their own."""

    def produce(topic: str, *values: bytes | None, compression: str = "none", **fields: Any) -> None:
        settings = ProducerSettings(compression=Compression[compression.upper()])
        cluster.forget([topic])
        with Producer(cluster, settings) as producer:
            for value in values:
                producer.send(topic, value, **fields)

    return produce


def read_topic(bootstrap: str, topic: str) -> list[tuple[TopicPartition, Record]]:
    """All that a topic holds at this moment, in the order of each partition."""
    found: list[tuple[TopicPartition, Record]] = []
    with Cluster(bootstrap) as cluster, Consumer(cluster) as consumer:
        partitions = [TopicPartition(topic, one.index) for one in Admin(cluster).describe_topic(topic).partitions]
        ends = end_offsets(cluster, partitions)
        consumer.assign(start_offsets(cluster, partitions))
        while any(consumer.positions[partition] < end for partition, end in ends.items()):
            found += [(partition, record) for partition, records, _ in consumer.poll() for record in records]
    return sorted(found, key=lambda one: one[0])


@pytest.fixture
def contents(broker: Broker) -> Callable[..., list[tuple[TopicPartition, Record]]]:
    return lambda topic, bootstrap=None: read_topic(bootstrap or broker.bootstrap, topic)


@pytest.fixture(scope="session", autouse=True)
def classes_ready() -> None:
    """Java has Spark's classes ready: tests start it some twenty times. Made once, whoever comes first."""
    if MISSING:
        return
    from pyspark_zurau.spark.class_archive import archive_file, make_archive

    archive = archive_file()
    if archive is None:
        return
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            with suppress(ZurauError, subprocess.TimeoutExpired):  # a test of its own says so; others only take longer
                make_archive()


@pytest.fixture(scope="session")
def spark(zurau_spark: SparkSession) -> SparkSession:
    """The session that users have in their tests."""
    return zurau_spark


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Where to reach a Postgres of our own."""
    from postgres_server import PostgresServer, Unavailable

    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'zurau[postgres]'")
    try:
        server = PostgresServer()
    except Unavailable as error:
        pytest.skip(str(error))
    yield server.dsn
    server.stop()


@pytest.fixture
def read(spark: SparkSession, broker: Broker) -> Callable[..., DataFrame]:
    """A batch query on a topic; options by their names."""

    def read(topic: str, schema: str | None = None, **options: Any) -> DataFrame:
        reader = spark.read.format("zurau").option("kafka.bootstrap.servers", broker.bootstrap)
        reader = reader.schema(schema) if schema else reader
        return reader.option("subscribe", topic).options(**options).load()

    return read


class Running:
    """A streaming query whose rows arrive in a list, batch by batch."""

    def __init__(self, frame: DataFrame, checkpoint: str, **trigger: Any) -> None:
        self.batches: list[list[Row]] = []
        writer = frame.writeStream.foreachBatch(lambda rows, _: self.batches.append(rows.collect()))
        self.query: StreamingQuery = writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()

    @property
    def values(self) -> list[bytes]:
        return [bytes(row.value) for batch in self.batches for row in batch]

    def wait_for(self, count: int) -> list[bytes]:
        """The values, as soon as there are so many."""
        deadline_s = time.monotonic() + PATIENCE_S
        while len(self.values) < count and time.monotonic() < deadline_s and self.query.isActive:
            time.sleep(0.05)
        failure = self.query.exception()
        if failure is not None:
            raise failure
        return self.values

    def finish(self) -> list[bytes]:
        """The values when the query has ended by itself; raises what ended it."""
        assert self.query.awaitTermination(PATIENCE_S), "the query is still running"
        return self.values


@pytest.fixture
def stream(spark: SparkSession, broker: Broker, tmp_path) -> Iterator[Callable[..., Running]]:
    """Starts a streaming query from the beginning of a topic; the same checkpoint each time within a test."""
    started: list[Running] = []

    def stream(topic: str, trigger: dict[str, Any] | None = None, bootstrap: str = "", **options: Any) -> Running:
        reader = spark.readStream.format("zurau").option("kafka.bootstrap.servers", bootstrap or broker.bootstrap)
        if "subscribePattern" not in options:
            reader = reader.option("subscribe", topic)
        frame = reader.options(**{"startingOffsets": "earliest"} | options).load()
        started.append(Running(frame, str(tmp_path / "checkpoint"), **trigger or {"availableNow": True}))
        return started[-1]

    yield stream
    for running in started:
        running.query.stop()


@pytest.fixture
def run_ready_made(spark: SparkSession, broker: Broker, tmp_path) -> Callable[..., None]:
    """Runs a ready-made pipeline over what there is, in the suite's session; its parameters by their names."""
    from pyspark_zurau.cli.run import read_once
    from pyspark_zurau.engine.locate import locate
    from pyspark_zurau.engine.read import read_pipeline
    from pyspark_zurau.engine.run import Execution
    from pyspark_zurau.engine.topics import create_missing

    def run(name: str, bootstrap: str | None = None, **parameters: str) -> None:
        given = {"checkpoint": str(tmp_path / "checkpoint")} | parameters
        pipeline = read_once(read_pipeline(locate(name), given, bootstrap=bootstrap or broker.bootstrap))
        create_missing(pipeline)
        status = Execution(spark, pipeline).run(lambda: False, lambda _: None)
        assert status.state == "finished", status.reason

    return run


@pytest.fixture
def generate(cluster: Cluster) -> Callable[..., int]:
    """Hands generated records to the broker."""
    from pyspark_zurau.pipelines.generated import produce

    def generate(records: Any) -> int:
        with Producer(cluster) as producer:
            return produce(records, producer)

    return generate
