from __future__ import annotations

import pytest

from zurau.api.kafka import create_topics
from zurau.ids import NO_TOPIC_ID
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)


@pytest.fixture
def create(ask, broker):
    def run(*topics, version=7, validate_only=False):
        request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
        return ask(create_topics, request, version, broker).topics

    return run


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created_and_can_be_served_at_once(create, broker, version):
    (result,) = create(CreatableTopic(name="orders", num_partitions=3, replication_factor=1), version=version)
    assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
    assert [broker.partition("orders", index).log.end_offset for index in range(3)] == [0, 0, 0]


def test_from_version_5_on_the_answer_shows_what_the_topic_became(create):
    configs = [CreatableTopicConfig(name="retention.ms", value="5")]
    (result,) = create(CreatableTopic(name="orders", configs=configs), version=5)
    assert (result.num_partitions, result.replication_factor) == (1, 1)
    shown = {config.name: (config.value, config.config_source) for config in result.configs}
    assert shown["retention.ms"] == ("5", 1)
    assert shown["cleanup.policy"] == ("delete", 5)


def test_from_version_7_on_the_answer_has_the_topic_id(create, broker):
    (result,) = create(CreatableTopic(name="orders"))
    assert result.topic_id == broker.image.topics["orders"].topic_id


def test_validate_only_answers_the_same_and_creates_nothing(create, broker):
    (result,) = create(CreatableTopic(name="orders", num_partitions=2), validate_only=True)
    assert (result.error_code, result.num_partitions, result.topic_id) == (0, 2, NO_TOPIC_ID)
    assert "orders" not in broker.image.topics


def test_one_refused_topic_does_not_spoil_the_others(create):
    results = create(CreatableTopic(name="not a name"), CreatableTopic(name="fine"))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE]


def test_a_topic_that_is_named_twice_is_created_not_at_all(create, broker):
    results = create(CreatableTopic(name="a"), CreatableTopic(name="b"), CreatableTopic(name="a"))
    assert {result.name: result.error_code for result in results} == {"a": ErrorCode.INVALID_REQUEST, "b": 0}
    assert "a" not in broker.image.topics


def test_replicas_can_be_placed_by_hand(create, broker):
    assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in (1, 0)]
    (result,) = create(CreatableTopic(name="orders", assignments=assignments))
    assert result.error_code == 0
    assert len(broker.image.topics["orders"].partitions) == 2


def test_a_partition_that_is_placed_twice_is_refused(create):
    assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[1])] * 2
    (result,) = create(CreatableTopic(name="orders", assignments=assignments))
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_refusal_says_what_to_do(create):
    (result,) = create(CreatableTopic(name="orders", replication_factor=3))
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "use 1 or less" in result.error_message


def test_a_topic_is_still_there_after_a_restart(create, broker, make_broker):
    create(CreatableTopic(name="orders", configs=[CreatableTopicConfig(name="retention.ms", value="5")]))
    before = broker.image.topics["orders"]
    broker.close()
    again = make_broker()
    assert again.image.topics["orders"] == before
    assert again.partition("orders", 0).log.settings.retention_ms == 5


def test_a_ratio_that_is_no_number_is_refused(create):
    configs = [CreatableTopicConfig(name="min.cleanable.dirty.ratio", value="nan")]
    (result,) = create(CreatableTopic(name="orders", configs=configs))
    assert result.error_code == ErrorCode.INVALID_CONFIG


def test_a_request_makes_ten_thousand_partitions_at_most(create, broker):
    half = {"num_partitions": 5001, "replication_factor": 1}
    results = create(CreatableTopic(name="a", **half), CreatableTopic(name="b", **half), validate_only=True)
    assert [result.error_code for result in results] == [ErrorCode.POLICY_VIOLATION] * 2


def test_a_message_that_quotes_a_long_list_still_fits_into_a_string(create):
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(range(50_000)))
    topic = CreatableTopic(name="a", num_partitions=-1, replication_factor=-1, assignments=[assignment])
    (result,) = create(topic, version=4)
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert len(result.error_message) < 1100
