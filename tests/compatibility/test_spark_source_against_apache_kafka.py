"""The Spark source and sink against Apache Kafka: what a task reads and writes, without a Spark session."""

from __future__ import annotations

import uuid

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'zurau[spark]'")
pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

import confluent_kafka
from pyspark.sql.types import StringType, StructType

from pyspark_zurau.arrow.columns import topic_schema
from pyspark_zurau.options.read_options import parse_batch_options
from pyspark_zurau.options.values import Values
from pyspark_zurau.reading.batch import BatchReader
from pyspark_zurau.writing.sink import parse_write_options, write_rows
from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster

pytestmark = pytest.mark.xdist_group("apache-kafka")


@pytest.fixture
def topic(apache_kafka):
    name = f"topic-{uuid.uuid4().hex[:8]}"
    with Cluster(apache_kafka.bootstrap) as cluster:
        Admin(cluster).create_topic(NewTopic(name, partition_count=2, replica_count=1))
    return name


@pytest.fixture
def read(apache_kafka, topic):
    """Every row of the topic, read as Spark's tasks would."""

    def read(**options: str) -> list[dict[str, object]]:
        needed = {"kafka.bootstrap.servers": apache_kafka.bootstrap, "subscribe": topic}
        reader = BatchReader(parse_batch_options(Values(needed | options)), topic_schema(with_headers=True))
        return [row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]

    return read


def in_transactions(bootstrap: str, topic: str) -> None:
    """One transaction that is committed around one that is aborted, in the same partition."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(60)
    for value, ends in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(60)
        if ends:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_of_another_client_is_read(apache_kafka, topic, read, codec):
    producer = confluent_kafka.Producer({"bootstrap.servers": apache_kafka.bootstrap, "compression.type": codec})
    for number in range(500):
        producer.produce(topic, b"value %d" % number, key=b"%d" % number, headers=[("h", b"x")])
    producer.flush(60)
    rows = read()
    assert sorted(int(row["key"]) for row in rows) == list(range(500))
    assert {tuple(header.items()) for row in rows for header in row["headers"]} == {(("key", "h"), ("value", b"x"))}


def test_aborted_transactions_are_left_out_when_only_what_is_committed_is_asked_for(apache_kafka, topic, read):
    in_transactions(apache_kafka.bootstrap, topic)
    assert [row["value"] for row in read(**{"kafka.isolation.level": "read_committed"})] == [b"kept", b"kept too"]


def test_everything_but_the_markers_is_read_by_default(apache_kafka, topic, read):
    in_transactions(apache_kafka.bootstrap, topic)
    assert [row["value"] for row in read()] == [b"kept", b"dropped", b"kept too"]


def test_what_the_sink_writes_is_read_by_another_client(apache_kafka, topic):
    schema = StructType().add("key", StringType()).add("value", StringType())
    needed = {"kafka.bootstrap.servers": apache_kafka.bootstrap, "topic": topic, "kafka.compression.type": "zstd"}
    rows = pa.record_batch({"key": [f"{number}" for number in range(300)], "value": ["x" * 50] * 300})
    write_rows(parse_write_options(Values(needed), schema, overwrite=False), iter([rows]))
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": apache_kafka.bootstrap, "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found = set()
    while len(found) < 300:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        found.add(int(message.key()))
    consumer.close()
    assert found == set(range(300))
