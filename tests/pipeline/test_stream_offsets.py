"""What the driver of a streaming query answers Spark, asked directly, against a real broker."""

from __future__ import annotations

import pickle

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'zurau[spark]'")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from pyspark_zurau.arrow.columns import topic_schema
from pyspark_zurau.options.read_options import parse_stream_options
from pyspark_zurau.options.values import Values
from pyspark_zurau.reading.errors import DataLost, SourceChanged
from pyspark_zurau.reading.stream import StreamReader
from zurau.ids import TopicPartition


@pytest.fixture
def open_stream(broker):
    opened: list[StreamReader] = []

    def open_stream(**options: str) -> StreamReader:
        values = Values({"kafka.bootstrap.servers": broker.bootstrap} | options)
        opened.append(StreamReader(parse_stream_options(values), topic_schema(with_headers=False)))
        return opened[-1]

    yield open_stream
    for reader in opened:
        reader.stop()


def latest(reader: StreamReader, start: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


def ranges(reader: StreamReader, start: dict, end: dict) -> list[tuple[int, int, int]]:
    return [
        (task.range.partition.partition, task.range.start, task.range.end) for task in reader.partitions(start, end)
    ]


def test_a_new_query_starts_at_the_end_and_stays_there_when_asked_twice(open_stream, new_topic, produce):
    topic = new_topic(2)
    produce(topic, b"a", partition=1)
    reader = open_stream(subscribe=topic)
    first = reader.initialOffset()
    produce(topic, b"b", partition=1)
    assert first == reader.initialOffset() == {topic: {"0": 0, "1": 1}}


def test_a_reader_can_be_sent_to_another_process(open_stream, new_topic):
    reader = pickle.loads(pickle.dumps(open_stream(subscribe=new_topic(), startingOffsets="earliest")))
    assert list(reader.initialOffset().values()) == [{"0": 0}]
    reader.stop()


def test_everything_is_taken_when_there_is_no_limit(open_stream, new_topic, produce):
    topic = new_topic()
    produce(topic, *[b"x"] * 5)
    reader = open_stream(subscribe=topic)
    assert isinstance(reader.getDefaultReadLimit(), ReadAllAvailable)
    assert latest(reader, {topic: {"0": 0}}) == {topic: {"0": 5}}
    assert reader.reportLatestOffset() == {topic: {"0": 5}}


def test_a_trigger_takes_no_more_than_allowed_in_proportion(open_stream, new_topic, produce):
    topic = new_topic(2)
    produce(topic, *[b"x"] * 30, partition=0)
    produce(topic, *[b"x"] * 10, partition=1)
    reader = open_stream(subscribe=topic, maxOffsetsPerTrigger="8")
    assert reader.getDefaultReadLimit() == ReadMaxRows(8)
    assert latest(reader, {topic: {"0": 0, "1": 0}}) == {topic: {"0": 6, "1": 2}}
    assert reader.reportLatestOffset() == {topic: {"0": 30, "1": 10}}
    assert reader.latestOffset({topic: {"0": 0, "1": 0}}, ReadAllAvailable()) == {topic: {"0": 30, "1": 10}}


def test_a_trigger_waits_for_enough_records(open_stream, new_topic, produce):
    topic = new_topic()
    reader = open_stream(subscribe=topic, minOffsetsPerTrigger="3", maxTriggerDelay="1h")
    assert reader.getDefaultReadLimit() == ReadMinRows(3)
    start = latest(reader, {topic: {"0": 0}})
    produce(topic, b"a", b"b")
    assert latest(reader, start) == start
    produce(topic, b"c")
    assert latest(reader, start) == {topic: {"0": 3}}


def test_a_trigger_does_not_wait_longer_than_the_delay(open_stream, new_topic, produce):
    topic = new_topic()
    reader = open_stream(subscribe=topic, minOffsetsPerTrigger="3", maxTriggerDelay="0ms")
    start = latest(reader, {topic: {"0": 0}})
    produce(topic, b"a")
    assert latest(reader, start) == {topic: {"0": 1}}


def test_partitions_that_are_added_are_read_from_their_beginning(open_stream, new_topic, produce, admin):
    topic = new_topic()
    reader = open_stream(subscribe=topic)
    start = reader.initialOffset()
    admin.add_partitions(topic, 2)
    produce(topic, b"a", partition=1)
    end = latest(reader, start)
    assert ranges(reader, start, end) == [(1, 0, 1)]


def test_new_partitions_are_not_looked_for_while_what_is_known_is_still_trusted(open_stream, new_topic, admin):
    topic = new_topic()
    reader = open_stream(subscribe=topic, **{"partition.metadata.cache.ttl.ms": "3600000"})
    start = reader.initialOffset()
    admin.add_partitions(topic, 2)
    assert latest(reader, start) == start


def test_topics_that_come_to_match_the_pattern_are_read_too(open_stream, new_topic, produce, unique):
    word = unique("family")
    reader = open_stream(subscribePattern=f"{word}.*")
    start = reader.initialOffset()
    assert start == {}
    topic = new_topic(word=word)
    produce(topic, b"a")
    assert ranges(reader, start, latest(reader, start)) == [(0, 0, 1)]


def test_a_topic_that_is_deleted_stops_the_query(open_stream, new_topic, produce, admin):
    topic = new_topic()
    reader = open_stream(subscribe=topic)
    start = reader.initialOffset()
    admin.delete_topic(topic)
    with pytest.raises(DataLost, match=f"{topic}-0 is gone"):
        reader.partitions(start, latest(reader, start))


def test_a_topic_that_is_deleted_is_left_out_when_loss_is_allowed(open_stream, new_topic, admin):
    topic = new_topic()
    reader = open_stream(subscribe=topic, failOnDataLoss="false")
    start = reader.initialOffset()
    admin.delete_topic(topic)
    end = latest(reader, start)
    assert end == {}
    assert ranges(reader, start, end) == []


def test_a_partition_that_has_become_shorter_stops_the_query(open_stream, new_topic):
    topic = new_topic()
    reader = open_stream(subscribe=topic)
    with pytest.raises(DataLost, match="ended at 5 before, and ends at 0 now"):
        reader.partitions({topic: {"0": 5}}, latest(reader, {topic: {"0": 5}}))


def test_a_new_partition_that_has_lost_its_beginning_stops_the_query(open_stream, new_topic, produce, admin):
    topic = new_topic()
    reader = open_stream(subscribe=topic)
    produce(topic, b"a", b"b")
    admin.delete_records({TopicPartition(topic, 0): 1})
    with pytest.raises(DataLost, match=f"new partition {topic}-0 begins at offset 1 instead of 0"):
        reader.partitions({}, {topic: {"0": 2}})


def test_an_available_now_run_reads_up_to_where_it_found_the_end(open_stream, new_topic, produce):
    topic = new_topic()
    produce(topic, b"a", b"b")
    reader = open_stream(subscribe=topic, maxOffsetsPerTrigger="1", minOffsetsPerTrigger="1")
    reader.prepareForTriggerAvailableNow()
    assert latest(reader, {topic: {"0": 0}}) == {topic: {"0": 1}}
    produce(topic, b"c")
    assert latest(reader, {topic: {"0": 1}}) == {topic: {"0": 2}}
    assert latest(reader, {topic: {"0": 2}}) == {topic: {"0": 2}}


def test_an_available_now_run_stops_when_what_it_set_out_to_read_is_gone(open_stream, new_topic, produce, admin):
    topic = new_topic()
    produce(topic, b"a")
    reader = open_stream(subscribe=topic)
    reader.prepareForTriggerAvailableNow()
    end = latest(reader, {topic: {"0": 0}})
    admin.delete_topic(topic)
    with pytest.raises(SourceChanged, match=f"{topic}-0 has fewer records"):
        reader.partitions({topic: {"0": 0}}, end)
