"""Tables and streams written to topics, by Spark itself."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.xdist_group("spark")

HEADERS = "array(named_struct('key', 'h', 'value', binary('x'))) as headers"


@pytest.fixture
def write(broker):
    def write(frame, mode: str = "append", **options: str) -> None:
        writer = frame.write.format("zurau").option("kafka.bootstrap.servers", broker.bootstrap)
        writer.options(**options).mode(mode).save()

    return write


def contents(frame) -> list[tuple[str | None, str | None]]:
    return sorted(map(tuple, frame.selectExpr("string(key)", "string(value)").collect()), key=str)


def test_rows_are_written_and_read_back(spark, read, write, new_topic):
    topic = new_topic(3)
    write(spark.createDataFrame([("a", "1"), (None, "2"), ("c", None)], "key string, value string"), topic=topic)
    assert contents(read(topic)) == [("a", "1"), ("c", None), (None, "2")]


def test_headers_are_written_and_read_back(spark, read, write, new_topic):
    topic = new_topic()
    write(spark.createDataFrame([("1",)], "value string").selectExpr("value", HEADERS), topic=topic)
    (row,) = read(topic, includeHeaders="true").collect()
    assert [(header.key, bytes(header.value)) for header in row.headers] == [("h", b"x")]


def test_a_row_says_which_topic_and_partition_it_goes_to(spark, read, write, new_topic):
    first, second = new_topic(3), new_topic(3)
    rows = [(first, 2, "a"), (second, 1, "b"), (first, 0, "c")]
    write(spark.createDataFrame(rows, "topic string, partition int, value string"))
    found = read(f"{first},{second}").selectExpr("topic", "partition", "string(value)").collect()
    assert sorted(map(tuple, found)) == sorted(rows)


def test_the_topic_option_counts_before_the_topic_column(spark, read, write, new_topic):
    topic = new_topic()
    write(spark.createDataFrame([("other", "a")], "topic string, value string"), topic=topic)
    assert read(topic).count() == 1


def test_a_key_goes_to_the_same_partition_as_with_other_clients(spark, broker, read, write, new_topic):
    confluent_kafka = pytest.importorskip("confluent_kafka")
    ours, theirs = new_topic(7), new_topic(7)
    keys = [f"key {number}" * (number % 4) for number in range(200)]
    write(spark.createDataFrame([(key, "") for key in keys], "key string, value string"), topic=ours)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce(theirs, b"", key=key.encode())
    producer.flush()
    places = {row.topic: set() for row in read(f"{ours},{theirs}").select("topic").distinct().collect()}
    for row in read(f"{ours},{theirs}").collect():
        if row.key:  # where other clients put an empty key is up to chance
            places[row.topic].add((bytes(row.key), row.partition))
    assert places[ours] == places[theirs]


def test_rows_without_a_key_are_spread_over_the_partitions(spark, read, write, new_topic):
    topic = new_topic(2)
    frame = spark.range(0, 40_000, 1, 2).selectExpr("string(id) as value")
    write(frame, topic=topic)
    counts = read(topic).groupBy("partition").count().collect()
    assert sum(row["count"] for row in counts) == 40_000
    assert len(counts) == 2


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed_as_asked(spark, read, write, new_topic, broker, codec):
    topic = new_topic()
    write(
        spark.range(0, 1000, 1, 1).selectExpr("repeat('x', 100) as value"),
        topic=topic,
        **{"kafka.compression.type": codec},
    )
    assert sum(file.stat().st_size for file in broker.directory.rglob(f"{topic}-0/*.log")) < 30_000
    assert read(topic).count() == 1000


def test_a_stream_is_written_as_it_comes(spark, broker, read, new_topic, produce, tmp_path):
    source, target = new_topic(), new_topic()
    produce(source, b"a", b"b", key=b"k")
    reader = spark.readStream.format("zurau").option("kafka.bootstrap.servers", broker.bootstrap)
    frame = reader.option("subscribe", source).option("startingOffsets", "earliest").load().select("key", "value")
    writer = frame.writeStream.format("zurau").option("kafka.bootstrap.servers", broker.bootstrap)
    writer = writer.option("topic", target).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert contents(read(target)) == [("k", "a"), ("k", "b")]


def test_results_that_change_are_written_batch_by_batch(spark, broker, read, new_topic, produce, tmp_path):
    from pyspark_zurau import write_each_batch

    source, target = new_topic(), new_topic()
    produce(source, b"a", b"b", b"a")
    reader = spark.readStream.format("zurau").option("kafka.bootstrap.servers", broker.bootstrap)
    frame = reader.option("subscribe", source).option("startingOffsets", "earliest").load()
    counts = frame.groupBy("value").count().selectExpr("value as key", "string(count) as value")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": target}
    query = (
        counts.writeStream.outputMode("update")
        .foreachBatch(write_each_batch(options))
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert contents(read(target)) == [("a", "2"), ("b", "1")]


@pytest.mark.parametrize(
    ("rows", "schema", "options", "message"),
    [
        ([("a",)], "key string", {"topic": "t"}, "there is no column value"),
        ([(1,)], "value int", {"topic": "t"}, "the column value is int; it must be string or binary"),
        ([("a",)], "value string", {}, "which topic to write to is not said"),
        ([(None, "a")], "topic string, value string", {}, "a row has no topic"),
        ([("a",)], "value string", {"topic": "t", "kafka.value.serializer": "x"}, "is not supported"),
    ],
)
def test_a_mistake_in_the_rows_or_options_is_explained(spark, write, rows, schema, options, message):
    with pytest.raises(Exception, match=message):
        write(spark.createDataFrame(rows, schema), **options)


def test_a_topic_cannot_be_overwritten(spark, write, new_topic):
    with pytest.raises(Exception, match="cannot be overwritten"):
        write(spark.createDataFrame([("a",)], "value string"), mode="overwrite", topic=new_topic())


def test_a_partition_that_does_not_exist_is_refused(spark, write, new_topic):
    topic = new_topic(2)
    with pytest.raises(Exception, match=f"partition 5 of '{topic}', which has 2"):
        write(spark.createDataFrame([(5, "a")], "partition int, value string"), topic=topic)


def test_timestamps_are_those_of_the_writing_unless_they_are_to_be_kept(spark, read, write, new_topic):
    anew, kept = new_topic(), new_topic()
    rows = spark.sql("SELECT 'x' AS value, timestamp '2020-02-03 04:05:06.789' + make_interval(0,0,0,id) AS timestamp"
                     " FROM range(3)").coalesce(1)  # fmt: skip
    write(rows, topic=anew)
    write(rows, topic=kept, includeTimestamp="true")
    assert {row.timestamp.year for row in read(anew).collect()} != {2020}
    assert [row.timestamp for row in read(kept).collect()] == [row.timestamp for row in rows.collect()]


def test_keeping_timestamps_needs_a_column_of_them(spark, write, new_topic):
    rows = spark.createDataFrame([("1", 5)], "value string, timestamp long")
    with pytest.raises(Exception, match="includeTimestamp needs a column timestamp"):
        write(rows, topic=new_topic(), includeTimestamp="true")
