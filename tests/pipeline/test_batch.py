"""Topics read as tables, by Spark itself."""

from __future__ import annotations

import datetime as dt

import pytest

from zurau.ids import TopicPartition
from zurau.records.batch import HEADER_BYTES

pytestmark = pytest.mark.xdist_group("spark")


def values(frame) -> list[bytes | None]:
    return sorted(bytes(row.value) for row in frame.select("value").collect())


def test_every_column_arrives_as_it_was_produced(read, new_topic, produce):
    topic = new_topic(2)
    produce(topic, b"v", key=b"k", partition=1, timestamp_ms=1_500, headers=[("h", b"x"), ("n", None)])
    (row,) = read(topic, includeHeaders="true").collect()
    assert row.asDict(recursive=True) == {
        "key": bytearray(b"k"),
        "value": bytearray(b"v"),
        "topic": topic,
        "partition": 1,
        "offset": 0,
        "timestamp": dt.datetime(1970, 1, 1, 0, 0, 1, 500_000),
        "timestampType": 0,
        "headers": [{"key": "h", "value": bytearray(b"x")}, {"key": "n", "value": None}],
    }


def test_nulls_stay_nulls_and_empty_stays_empty(read, new_topic, produce):
    topic = new_topic()
    produce(topic, None, key=b"")
    produce(topic, b"", key=None)
    rows = read(topic, includeHeaders="true").orderBy("offset").collect()
    assert [(row.key, row.value, row.headers) for row in rows] == [(b"", None, None), (None, b"", None)]


def test_headers_are_a_column_only_when_asked_for(read, new_topic):
    topic = new_topic()
    names = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert read(topic).columns == names
    assert read(topic, includeHeaders="true").columns == [*names, "headers"]


def test_an_empty_topic_is_an_empty_table(read, new_topic):
    assert read(new_topic(3)).count() == 0


def test_every_codec_is_read(read, new_topic, produce):
    topic = new_topic()
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        produce(topic, *(f"{codec} {number}".encode() for number in range(100)), compression=codec)
    found = read(topic).selectExpr("split(cast(value as string), ' ')[0] as codec").groupBy("codec").count().collect()
    assert dict(map(tuple, found)) == dict.fromkeys(("none", "gzip", "snappy", "lz4", "zstd"), 100)


def test_a_topic_of_many_partitions_is_counted_and_summed_exactly(read, new_topic, cluster):
    from zurau.client.producer import Producer

    topic = new_topic(20)
    with Producer(cluster) as producer:
        for number in range(20_000):
            producer.send(topic, b"%d" % number, key=b"%d" % (number % 1000))
    frame = read(topic, minPartitions="30").selectExpr(
        "cast(string(value) as long) as n", "spark_partition_id() as task"
    )
    (row,) = frame.selectExpr("count(*) c", "sum(n) s", "count(distinct task) t").collect()
    assert (row.c, row.s) == (20_000, sum(range(20_000)))
    assert row.t >= 25


def test_only_the_columns_that_a_schema_names_are_read(read, new_topic, produce):
    topic = new_topic()
    produce(topic, b"v", key=b"k")
    frame = read(topic, schema="offset bigint, value binary")
    assert [tuple(row) for row in frame.collect()] == [(0, bytearray(b"v"))]


def test_a_temporary_view_can_be_made_in_sql(spark, broker, new_topic, produce):
    topic = new_topic()
    produce(topic, b"v")
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW clicks USING zurau"
        f" OPTIONS (kafka.bootstrap.servers '{broker.bootstrap}', subscribe '{topic}')"
    )
    assert spark.sql("SELECT string(value) AS v FROM clicks").collect() == [("v",)]


def test_a_mistake_in_the_options_is_explained(read, unique):
    with pytest.raises(Exception, match="there is no topic 'missing-"):
        read(unique("missing")).collect()
    with pytest.raises(Exception, match="did you mean startingOffsets"):
        read("any", startingOffset="earliest").collect()


def test_records_that_are_gone_stop_the_query(read, new_topic, produce, admin):
    topic = new_topic()
    produce(topic, b"a", b"b", b"c")
    admin.delete_records({TopicPartition(topic, 0): 2})
    with pytest.raises(Exception, match=f"{topic}-0, offsets 0 to 1.*failOnDataLoss"):
        read(topic, startingOffsets=f'{{"{topic}": {{"0": 0}}}}').collect()


def test_records_that_are_gone_are_left_out_when_that_is_allowed(read, new_topic, produce, admin):
    topic = new_topic()
    produce(topic, b"a", b"b", b"c")
    admin.delete_records({TopicPartition(topic, 0): 2})
    frame = read(topic, startingOffsets=f'{{"{topic}": {{"0": 0}}}}', failOnDataLoss="false")
    assert values(frame) == [b"c"]


def test_a_poisoned_batch_stops_the_query_and_is_named(read, new_topic, produce, broker):
    topic = new_topic()
    produce(topic, b"good")
    produce(topic, b"poisoned")
    (segment,) = broker.directory.rglob(f"{topic}-0/*.log")
    content = bytearray(segment.read_bytes())
    content[content.index(b"poisoned")] ^= 1
    assert len(content) > 2 * HEADER_BYTES
    segment.write_bytes(content)
    with pytest.raises(Exception, match=f"{topic}-0 at offset 1: the checksum does not fit"):
        read(topic).collect()


def test_a_slip_in_an_option_is_told_by_load_in_one_sentence(read):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as raised:
        read("any", startingOfsets="earliest")
    assert "there is no option startingofsets; did you mean startingOffsets?" in str(raised.value).splitlines()[0]
    assert "Traceback" not in str(raised.value)
