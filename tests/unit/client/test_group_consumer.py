"""Reading as a member of a group."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.consumer import GO_TO_END
from zurau.client.groups.admin import GroupAdmin
from zurau.client.groups.consumer import GroupConsumer
from zurau.client.groups.membership import GroupSettings
from zurau.client.producer import Producer
from zurau.ids import TopicPartition
from zurau.testing import Broker

QUICK = GroupSettings(heartbeat_interval_s=0.05)


@pytest.fixture
def filled(cluster, topic):
    """Ten records in each partition."""
    with Producer(cluster) as producer:
        for number in range(30):
            producer.send(topic, b"%d" % number, partition=number % 3)
    return topic


def read(consumer: GroupConsumer, count: int) -> list[int]:
    values: list[int] = []
    while len(values) < count:
        values += [int(record.value) for _, records, _ in consumer.poll() for record in records]
    return values


def test_a_lone_member_reads_everything(cluster, filled, unique):
    with GroupConsumer(cluster, unique("group"), [filled], settings=QUICK) as consumer:
        assert sorted(read(consumer, 30)) == list(range(30))
        assert consumer.assignment == cluster.partitions_of(filled)


def test_leaving_commits_and_the_next_member_goes_on(cluster, filled, unique):
    group = unique("group")
    with GroupConsumer(cluster, group, [filled], settings=QUICK) as consumer:
        read(consumer, 30)
    with Producer(cluster) as producer:
        producer.send(filled, b"30", partition=0)
    with GroupConsumer(cluster, group, [filled], settings=QUICK) as consumer:
        assert read(consumer, 1) == [30]
    assert GroupAdmin(cluster).offsets(group)[TopicPartition(filled, 0)] == 11


def test_records_taken_back_are_not_committed(cluster, filled, unique):
    group = unique("group")
    with GroupConsumer(cluster, group, [filled], settings=QUICK) as consumer:
        read(consumer, 30)
        consumer.seek(TopicPartition(filled, 1), 4)
    assert GroupAdmin(cluster).offsets(group)[TopicPartition(filled, 1)] == 4


def test_a_group_without_offsets_may_start_at_the_end(cluster, filled, unique):
    with GroupConsumer(cluster, unique("group"), [filled], start=GO_TO_END, settings=QUICK) as consumer:
        consumer.poll(0)
        assert set(consumer.positions.values()) == {10}


def test_where_a_group_begins_is_remembered_without_reading_anything(cluster, filled, unique):
    group = unique("group")
    with GroupConsumer(cluster, group, [filled], start=GO_TO_END, settings=QUICK) as consumer:
        consumer.poll(0)
    assert GroupAdmin(cluster).offsets(group) == dict.fromkeys(cluster.partitions_of(filled), 10)


def test_a_member_that_left_is_gone_at_once(cluster, filled, unique):
    group = unique("group")
    with GroupConsumer(cluster, group, [filled], settings=QUICK) as consumer:
        consumer.poll(0)
        assert len(GroupAdmin(cluster).describe_group(group).members) == 1
    assert GroupAdmin(cluster).describe_group(group).members == ()


def test_two_members_share_and_the_last_one_takes_over(broker, filled, unique):
    group = unique("group")
    both, first_left = threading.Barrier(2), threading.Event()
    shares: dict[str, list[TopicPartition]] = {}

    def run(name: str, *, stays: bool) -> None:
        with (
            Cluster(broker.bootstrap) as cluster,
            GroupConsumer(cluster, group, [filled], settings=QUICK) as consumer,
        ):
            while not 0 < len(consumer.assignment) < 3:
                consumer.poll(0.05)
            shares[name] = consumer.assignment
            both.wait(30)
            if stays:
                while len(consumer.assignment) < 3:
                    consumer.poll(0.05)
                shares["the last"] = consumer.assignment
                first_left.wait(30)

    threads = [threading.Thread(target=run, args=(name,), kwargs={"stays": name == "b"}) for name in "ab"]
    for thread in threads:
        thread.start()
    threads[0].join(60)
    first_left.set()
    threads[1].join(60)
    assert sorted(shares["a"] + shares["b"]) == shares["the last"]


def test_an_interrupted_member_commits_what_it_read_and_leaves(cluster, filled, unique):
    group = unique("group")
    with suppress(KeyboardInterrupt), GroupConsumer(cluster, group, [filled], settings=QUICK) as consumer:
        read(consumer, 30)
        raise KeyboardInterrupt
    assert GroupAdmin(cluster).offsets(group) == dict.fromkeys(cluster.partitions_of(filled), 10)
    assert GroupAdmin(cluster).describe_group(group).members == ()


def test_a_member_whose_broker_is_gone_leaves_without_a_word(unique):
    broker = Broker(initial_rebalance_delay_ms=0).start()
    with Cluster(broker.bootstrap) as cluster:
        topic = Admin(cluster).create_topic(NewTopic(unique("topic"))).name
        with suppress(KeyboardInterrupt), GroupConsumer(cluster, "group", [topic], settings=QUICK) as consumer:
            consumer.poll(0)
            broker.stop()
            raise KeyboardInterrupt
