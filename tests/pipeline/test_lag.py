"""How far behind a query is, as its listener tells it and as a consumer group shows it."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from driver import wait_until

from pyspark_zurau import LagListener, lag_of
from zurau.client.groups.admin import GroupAdmin
from zurau.ids import TopicPartition

pytestmark = pytest.mark.xdist_group("spark")

OFTEN = {"processingTime": "50 milliseconds"}


def test_lag_is_what_lies_between_what_was_read_and_the_end():
    source = {"endOffset": '{"t": {"0": 2, "1": 5}}', "latestOffset": '{"t": {"0": 9, "1": 5, "2": 4}}'}
    expected = {TopicPartition("t", 0): 7, TopicPartition("t", 1): 0, TopicPartition("t", 2): 4}
    assert lag_of({"sources": [source]}) == expected
    assert lag_of({"sources": [{name: json.loads(text) for name, text in source.items()}]}) == expected


@pytest.mark.parametrize("offset", [None, "null", "7", '{"logOffset": 3}', '[["a", 1]]', "not JSON", '{"a": {"b": 1}}'])
def test_sources_that_are_not_topics_have_no_lag(offset):
    assert lag_of({"sources": [{"endOffset": offset, "latestOffset": offset}]}) == {}


def test_a_listener_tells_the_lag_of_every_trigger(spark, stream, new_topic, produce):
    topic = new_topic()
    produce(topic, *[b"x"] * 5)
    heard = []
    listener = LagListener(lambda _, lag: heard.append(lag.get(TopicPartition(topic, 0))))
    spark.streams.addListener(listener)
    try:
        stream(topic, maxOffsetsPerTrigger="2").finish()
        wait_until("all triggers were heard of", lambda: 0 in heard)
        wait_until("the end was heard of", lambda: not listener.lags)
    finally:
        spark.streams.removeListener(listener)
    assert heard[:3] == [3, 1, 0]


def test_a_consumer_group_shows_how_far_a_query_is(stream, new_topic, produce, cluster, unique):
    topic, group = new_topic(2), unique("group")
    produce(topic, *[b"x"] * 3, partition=1)
    running = stream(topic, trigger=OFTEN, mirrorToGroup=group)
    running.wait_for(3)
    expected = {TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 3}
    wait_until("the group is told", lambda: GroupAdmin(cluster).offsets(group) == expected)


def test_the_last_batch_of_an_available_now_run_is_mirrored_too(stream, new_topic, produce, cluster, unique):
    topic, group = new_topic(), unique("group")
    produce(topic, *[b"x"] * 3)
    stream(topic, mirrorToGroup=group, maxOffsetsPerTrigger="2").finish()
    assert GroupAdmin(cluster).offsets(group) == {TopicPartition(topic, 0): 3}
