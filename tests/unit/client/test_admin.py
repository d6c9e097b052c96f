"""Topics and their settings."""

from __future__ import annotations

import pytest

from zurau.client.admin import Admin, NewTopic
from zurau.client.errors import BrokerRefused, UnknownTopic
from zurau.client.offsets import start_offsets
from zurau.client.producer import Producer
from zurau.ids import TopicPartition


@pytest.fixture
def admin(cluster):
    return Admin(cluster)


def test_a_new_topic_is_there_with_its_leaders(admin, unique):
    name = unique("new")
    made = admin.create_topic(NewTopic(name, partition_count=4, replica_count=1))
    assert len(made.partitions) == 4
    assert all(partition.leader >= 0 for partition in made.partitions)
    assert name in [topic.name for topic in admin.list_topics()]


def test_a_name_that_is_taken_is_refused_with_advice(admin, topic):
    with pytest.raises(BrokerRefused, match="choose another name"):
        admin.create_topic(NewTopic(topic))


def test_a_bad_name_is_refused_with_advice(admin):
    with pytest.raises(BrokerRefused, match="ASCII"):
        admin.create_topic(NewTopic("no spaces"))


def test_a_topic_can_be_made_with_settings(admin, unique):
    name = unique("with-settings")
    admin.create_topic(NewTopic(name, settings={"retention.ms": "5000"}))
    own = {entry.name: entry.value for entry in admin.topic_settings(name) if entry.source == "topic"}
    assert own == {"retention.ms": "5000"}


def test_settings_change_and_go_back_to_their_default(admin, topic):
    before = {entry.name: entry for entry in admin.topic_settings(topic)}
    admin.change_topic_settings(topic, {"segment.ms": "5000"})
    changed = {entry.name: entry for entry in admin.topic_settings(topic)}["segment.ms"]
    assert (changed.value, changed.source) == ("5000", "topic")
    admin.change_topic_settings(topic, {"segment.ms": None})
    assert {entry.name: entry for entry in admin.topic_settings(topic)} == before


def test_a_setting_that_does_not_exist_is_refused(admin, topic):
    with pytest.raises(BrokerRefused, match=r"settings of topic"):
        admin.change_topic_settings(topic, {"no.such.setting": "1"})


def test_a_deleted_topic_is_gone(admin, topic):
    admin.delete_topic(topic)
    assert topic not in [found.name for found in admin.list_topics()]
    with pytest.raises(UnknownTopic):
        admin.delete_topic(topic)


def test_partitions_can_be_added(admin, topic):
    assert len(admin.add_partitions(topic, 5).partitions) == 5


def test_partitions_cannot_be_taken_away(admin, topic):
    with pytest.raises(BrokerRefused, match="adding partitions"):
        admin.add_partitions(topic, 1)


def test_deleted_records_move_the_start(admin, cluster, topic):
    partition = TopicPartition(topic, 0)
    with Producer(cluster) as producer:
        for _ in range(5):
            producer.send(topic, b"x", partition=0)
    assert admin.delete_records({partition: 3}) == {partition: 3}
    assert start_offsets(cluster, [partition]) == {partition: 3}
    assert admin.delete_records({partition: -1}) == {partition: 5}
