"""Which offsets a query reads, found out from a real broker, without a Spark session."""

from __future__ import annotations

import dataclasses
import socket

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.arrow.columns import topic_schema
from pyspark_zurau.options.read_options import parse_batch_options
from pyspark_zurau.options.values import Values
from pyspark_zurau.reading.batch import BatchReader
from pyspark_zurau.reading.errors import DataLost
from zurau.client.errors import BrokerUnreachable, TimedOut
from zurau.errors import SettingsError


@pytest.fixture
def plan(broker):
    """The ranges of a batch query, as (partition, start, end)."""

    def plan(**options: str) -> list[tuple[int, int, int]]:
        values = Values({"kafka.bootstrap.servers": broker.bootstrap} | options)
        tasks = BatchReader(parse_batch_options(values), topic_schema(with_headers=False)).partitions()
        return [(task.range.partition.partition, task.range.start, task.range.end) for task in tasks]

    return plan


@pytest.fixture
def timed_topic(new_topic, produce):
    """Two partitions; records of the seconds 1 to 4 in the first and of second 1 in the other."""
    topic = new_topic(2)
    for second in (1, 2, 3, 4):
        produce(topic, b"x", partition=0, timestamp_ms=1000 * second)
    produce(topic, b"x", partition=1, timestamp_ms=1000)
    return topic


def test_everything_is_read_when_nothing_is_said(plan, timed_topic):
    assert plan(subscribe=timed_topic) == [(0, 0, 4), (1, 0, 1)]


def test_offsets_say_where_to_start_and_where_to_end(plan, timed_topic):
    starting, ending = f'{{"{timed_topic}": {{"0": 1, "1": -2}}}}', f'{{"{timed_topic}": {{"0": 3, "1": -1}}}}'
    found = plan(subscribe=timed_topic, startingOffsets=starting, endingOffsets=ending)
    assert found == [(0, 1, 3), (1, 0, 1)]


def test_offsets_must_name_every_partition(plan, timed_topic):
    with pytest.raises(SettingsError, match=f"missing: {timed_topic}-1"):
        plan(subscribe=timed_topic, startingOffsets=f'{{"{timed_topic}": {{"0": 1}}}}')
    with pytest.raises(SettingsError, match=f"not read by this query: {timed_topic}-7"):
        plan(subscribe=timed_topic, endingOffsets=f'{{"{timed_topic}": {{"0": 1, "1": 1, "7": 1}}}}')


def test_a_moment_says_where_to_start(plan, timed_topic):
    found = plan(subscribe=timed_topic, startingTimestamp="2500", startingOffsetsByTimestampStrategy="latest")
    assert found == [(0, 2, 4)]


def test_a_start_after_the_last_record_is_an_error_unless_told_otherwise(plan, timed_topic):
    with pytest.raises(SettingsError, match=f"{timed_topic}-1 has no record at or after"):
        plan(subscribe=timed_topic, startingTimestamp="2500")


def test_moments_may_differ_by_partition(plan, timed_topic):
    timestamps = f'{{"{timed_topic}": {{"0": 3000, "1": 500}}}}'
    assert plan(subscribe=timed_topic, startingOffsetsByTimestamp=timestamps) == [(0, 2, 4), (1, 0, 1)]


def test_a_moment_says_where_to_end_and_the_end_will_do_for_what_is_older(plan, timed_topic):
    assert plan(subscribe=timed_topic, endingTimestamp="3000") == [(0, 0, 2), (1, 0, 1)]
    by_partition = f'{{"{timed_topic}": {{"0": 2000, "1": 9000}}}}'
    assert plan(subscribe=timed_topic, endingOffsetsByTimestamp=by_partition) == [(0, 0, 1), (1, 0, 1)]


def test_partitions_may_be_assigned_one_by_one(plan, timed_topic):
    assert plan(assign=f'{{"{timed_topic}": [1]}}') == [(1, 0, 1)]


def test_topics_may_be_chosen_by_pattern(plan, new_topic, produce, unique):
    word = unique("family")
    for name in (new_topic(word=f"{word}-a"), new_topic(word=f"{word}-b")):
        produce(name, b"x")
    assert plan(subscribePattern=f"{word}-.*") == [(0, 0, 1), (0, 0, 1)]
    assert plan(subscribePattern=word) == []


def test_a_topic_that_is_not_there_is_named(plan, unique):
    missing = unique("missing")
    with pytest.raises(SettingsError, match=f"there is no topic '{missing}'"):
        plan(subscribe=missing)


def test_a_partition_that_is_not_there_is_named(plan, timed_topic):
    with pytest.raises(SettingsError, match=f"there is no partition {timed_topic}-5"):
        plan(assign=f'{{"{timed_topic}": [0, 5]}}')


def test_ranges_are_divided_among_more_tasks_when_asked(plan, timed_topic):
    assert plan(subscribe=timed_topic, maxRecordsPerPartition="2") == [(0, 0, 2), (0, 2, 4), (1, 0, 1)]
    assert plan(subscribe=timed_topic, minPartitions="3") == [(0, 0, 2), (0, 2, 4), (1, 0, 1)]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_is_deleted_after_planning_is_not_waited_for(broker, new_topic, produce, admin, fails):
    topic = new_topic()
    produce(topic, b"x")
    needed = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "kafka.request.timeout.ms": "600000"}
    values = Values(needed | {"failOnDataLoss": str(fails)})
    reader = BatchReader(parse_batch_options(values), topic_schema(with_headers=False))
    (task,) = reader.partitions()
    admin.delete_topic(topic)
    if fails:
        with pytest.raises(DataLost, match=f"{topic}-0, offsets 0 to 0"):
            list(reader.read(task))
    else:
        assert list(reader.read(task)) == []


def test_the_driver_asks_as_often_as_it_is_told_to(caplog):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = f"127.0.0.1:{listener.getsockname()[1]}"
    needed = {"kafka.bootstrap.servers": closed, "subscribe": "t", "kafka.request.timeout.ms": "20"}
    values = Values(needed | {"fetchOffset.numRetries": "4", "fetchOffset.retryIntervalMs": "1"})
    reader = BatchReader(parse_batch_options(values), topic_schema(with_headers=False))
    with pytest.raises(BrokerUnreachable):
        reader.partitions()
    assert [record.args[0] for record in caplog.records] == [1, 2, 3]


def test_a_task_waits_for_records_as_long_as_it_is_told_to(broker, new_topic, produce):
    topic = new_topic()
    produce(topic, b"x")
    needed = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "kafkaConsumer.pollTimeoutMs": "50"}
    reader = BatchReader(parse_batch_options(Values(needed)), topic_schema(with_headers=False))
    (task,) = reader.partitions()
    beyond_the_end = dataclasses.replace(task, range=task.range._replace(end=5))
    with pytest.raises(TimedOut, match=r"at or after offset 1 came within 0\.05 s"):
        list(reader.read(beyond_the_end))
