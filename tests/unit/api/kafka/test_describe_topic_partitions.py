from __future__ import annotations

import pytest

from zurau.api.kafka import describe_topic_partitions
from zurau.ids import TopicId
from zurau.machines.controller.commands import CreateTopic
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)


@pytest.fixture
def broker(broker, settle):
    async def create():
        for number, name in enumerate(["c", "a", "b"]):
            await broker.controller.submit(CreateTopic(name, TopicId(bytes([number] * 16)), partition_count=3))

    settle(create())
    return broker


@pytest.fixture
def describe(ask, broker):
    def run(*names, limit=2000, cursor=None):
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor and Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        return ask(describe_topic_partitions, request, 0, broker)

    return run


def listed(response):
    return [(topic.name, [part.partition_index for part in topic.partitions]) for topic in response.topics]


def test_topics_come_in_the_order_of_their_names(describe):
    response = describe("c", "a", "c")
    assert listed(response) == [("a", [0, 1, 2]), ("c", [0, 1, 2])]
    assert response.next_cursor is None


def test_no_names_ask_for_every_topic(describe):
    assert [topic.name for topic in describe().topics] == ["__consumer_offsets", "a", "b", "c"]


def test_a_page_ends_within_a_topic_and_the_next_one_goes_on_there(describe):
    first = describe("a", "b", limit=4)
    assert listed(first) == [("a", [0, 1, 2]), ("b", [0])]
    assert first.next_cursor == Cursor(topic_name="b", partition_index=1)
    second = describe("a", "b", limit=4, cursor=("b", 1))
    assert listed(second) == [("b", [1, 2])]
    assert second.next_cursor is None


def test_a_page_that_ends_with_a_topic_points_at_the_next_one(describe):
    response = describe("a", "b", limit=3)
    assert listed(response) == [("a", [0, 1, 2])]
    assert response.next_cursor == Cursor(topic_name="b", partition_index=0)


def test_a_cursor_at_a_topic_that_is_gone_goes_on_behind_it(describe):
    assert listed(describe("a", "b", "c", cursor=("aa", 2))) == [("b", [0, 1, 2]), ("c", [0, 1, 2])]


def test_unknown_topics_are_answered_as_such(describe):
    (topic,) = describe("nothing").topics
    assert (topic.name, topic.error_code) == ("nothing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_has_at_least_one_partition_so_that_it_ends(describe, limit):
    assert listed(describe("a", limit=limit)) == [("a", [0])]


def test_the_broker_limits_pages_too(ask, make_broker):
    broker = make_broker(max_request_partition_size_limit=2, offsets_topic_num_partitions=3)
    response = ask(describe_topic_partitions, DescribeTopicPartitionsRequest(topics=[]), 0, broker)
    assert listed(response) == [("__consumer_offsets", [0, 1])]


def test_leaders_and_replicas_are_told(describe):
    (topic,) = describe("a").topics
    partition = topic.partitions[0]
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])
