from __future__ import annotations

import pytest

from zurau.errors import Refused
from zurau.ids import TopicId
from zurau.machines.controller.changes import PartitionsAdded, TopicAdded, TopicRemoved
from zurau.machines.controller.commands import CreatePartitions, CreateTopic, DeleteTopic
from zurau.machines.controller.names import OFFSETS_TOPIC
from zurau.wire.kafka.error_codes import ErrorCode

A_TOPIC_ID = TopicId(bytes(range(16)))


def create(name="orders", topic_id=A_TOPIC_ID, partition_count=1, replication_factor=1, **rest):
    return CreateTopic(name, topic_id, partition_count, replication_factor, **rest)


def refusal(cluster, command):
    with pytest.raises(Refused) as caught:
        cluster.ask(command)
    return caught.value


def test_a_created_topic_is_found_by_name_and_by_id(cluster):
    topic = cluster.ask(create(partition_count=3))
    assert cluster.image.topics["orders"] is cluster.image.topics_by_id[A_TOPIC_ID]
    assert cluster.image.topics["orders"] == topic
    assert [partition.index for partition in topic.partitions] == [0, 1, 2]


def test_whoever_listens_is_told_of_the_new_topic_with_its_configs(cluster):
    cluster.ask(create(configs={"retention.ms": "5"}))
    assert cluster.changes[-1] == TopicAdded(cluster.image.topics["orders"])
    assert cluster.changes[-1].topic.configs == {"retention.ms": "5"}


def test_validate_only_shows_the_topic_and_writes_nothing(cluster):
    records_before = len(cluster.records)
    topic = cluster.ask(create(partition_count=2, validate_only=True))
    assert len(topic.partitions) == 2
    assert len(cluster.records) == records_before
    assert not cluster.image.topics


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "x" * 250, "größe", "a\n"])
def test_names_that_no_topic_can_have_are_refused(cluster, name):
    assert refusal(cluster, create(name)).code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_longest_lawful_name_is_accepted(cluster):
    assert cluster.ask(create("x" * 249)).name == "x" * 249


def test_the_same_name_twice_is_refused(cluster):
    cluster.ask(create())
    assert refusal(cluster, create(topic_id=TopicId(bytes(16)))).code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_names_that_differ_only_in_dots_and_underscores_collide(cluster):
    cluster.ask(create("a.b"))
    refused = refusal(cluster, create("a_b", TopicId(bytes(16))))
    assert refused.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "'a.b'" in refused.message


def test_a_name_is_free_again_once_its_topic_is_deleted(cluster):
    cluster.ask(create("a.b"))
    cluster.ask(DeleteTopic(A_TOPIC_ID))
    assert cluster.ask(create("a_b", TopicId(bytes(16)))).name == "a_b"


@pytest.mark.parametrize("count", [0, -2, 10_001, 2**31 - 1])
def test_a_partition_count_out_of_bounds_is_refused(cluster, count):
    assert refusal(cluster, create(partition_count=count)).code is ErrorCode.INVALID_PARTITIONS


def test_a_topic_that_does_not_say_gets_the_default_counts(cluster):
    topic = cluster.ask(create(partition_count=-1, replication_factor=-1))
    assert len(topic.partitions) == 4
    assert topic.replication_factor == 1


def test_more_replicas_than_brokers_are_refused_with_what_to_do(cluster):
    refused = refusal(cluster, create(replication_factor=3))
    assert refused.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert "use 1 or less" in refused.message


def test_an_unlawful_config_refuses_the_topic_with_the_text_of_the_settings(cluster):
    refused = refusal(cluster, create(configs={"retention.ms": "soon"}))
    assert refused.code is ErrorCode.INVALID_CONFIG
    assert "whole number" in refused.message


def test_an_unknown_config_is_refused_and_the_closest_one_is_named(cluster):
    refused = refusal(cluster, create(configs={"retention.mss": "1"}))
    assert refused.code is ErrorCode.INVALID_CONFIG
    assert "did you mean 'retention.ms'" in refused.message


def test_a_config_without_a_value_is_refused(cluster):
    assert refusal(cluster, create(configs={"retention.ms": None})).code is ErrorCode.INVALID_CONFIG


def test_configs_that_do_not_go_together_are_refused(cluster):
    refused = refusal(cluster, create(configs={"min.lag.ms": "9", "max.lag.ms": "3"}))
    assert refused.code is ErrorCode.INVALID_CONFIG


def test_config_values_are_kept_in_their_plainest_spelling(cluster):
    topic = cluster.ask(create(configs={"retention.ms": " 05 ", "cleanup.policy": "compact, delete"}))
    assert topic.configs == {"retention.ms": "5", "cleanup.policy": "compact,delete"}


@pytest.mark.parametrize("name", [OFFSETS_TOPIC, "__cluster_metadata", "__consumer.offsets"])
def test_clients_cannot_create_the_brokers_own_topics(cluster, name):
    assert refusal(cluster, create(name)).code is ErrorCode.INVALID_REQUEST


def test_the_broker_creates_its_own_topics_and_clients_cannot_delete_or_grow_them(cluster):
    topic = cluster.ask(create(OFFSETS_TOPIC, by_broker=True))
    assert topic.is_internal
    assert refusal(cluster, DeleteTopic(A_TOPIC_ID)).code is ErrorCode.INVALID_REQUEST
    assert refusal(cluster, CreatePartitions(OFFSETS_TOPIC, 2)).code is ErrorCode.INVALID_REQUEST


def test_a_deleted_topic_is_gone_and_listeners_see_it_as_it_last_was(cluster):
    topic = cluster.ask(create())
    cluster.ask(DeleteTopic(A_TOPIC_ID))
    assert not cluster.image.topics
    assert not cluster.image.topics_by_id
    assert cluster.changes[-1] == TopicRemoved(topic)


def test_deleting_a_topic_that_is_not_there_is_refused(cluster):
    assert refusal(cluster, DeleteTopic(A_TOPIC_ID)).code is ErrorCode.UNKNOWN_TOPIC_ID


def test_added_partitions_follow_the_ones_that_are_there(cluster):
    cluster.ask(create(partition_count=2))
    cluster.ask(CreatePartitions("orders", 5))
    topic = cluster.image.topics["orders"]
    assert [partition.index for partition in topic.partitions] == [0, 1, 2, 3, 4]
    assert cluster.changes[-1] == PartitionsAdded(topic, topic.partitions[2:])


@pytest.mark.parametrize("count", [0, 1, 2, 10_001])
def test_a_topic_cannot_shrink_or_grow_without_bounds(cluster, count):
    cluster.ask(create(partition_count=2))
    assert refusal(cluster, CreatePartitions("orders", count)).code is ErrorCode.INVALID_PARTITIONS


def test_partitions_of_an_unknown_topic_are_refused(cluster):
    assert refusal(cluster, CreatePartitions("orders", 2)).code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_partitions_are_not_added_when_only_validating(cluster):
    cluster.ask(create())
    cluster.ask(CreatePartitions("orders", 5, validate_only=True))
    assert len(cluster.image.topics["orders"].partitions) == 1


def test_the_image_epoch_grows_with_each_record(cluster):
    before = cluster.image.epoch
    cluster.ask(create())
    assert cluster.image.epoch == before + 1
