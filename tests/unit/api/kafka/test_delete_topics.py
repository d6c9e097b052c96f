from __future__ import annotations

import pytest

from zurau.api.kafka import delete_topics
from zurau.errors import Refused
from zurau.ids import TopicId
from zurau.machines.controller.commands import CreateTopic
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

A_TOPIC_ID = TopicId(bytes(range(16)))


@pytest.fixture
def broker(broker, settle):
    async def create():
        await broker.controller.submit(CreateTopic("orders", A_TOPIC_ID))

    settle(create())
    return broker


@pytest.fixture
def delete(ask, broker):
    def run(*wanted, version=6):
        if version < 6:
            request = DeleteTopicsRequest(topic_names=list(wanted), timeout_ms=1000)
        else:
            request = DeleteTopicsRequest(topics=list(wanted), timeout_ms=1000)
        return ask(delete_topics, request, version, broker).responses

    return run


@pytest.mark.parametrize("version", range(1, 6))
def test_a_topic_is_deleted_by_name_and_no_longer_served(delete, broker, version):
    (result,) = delete("orders", version=version)
    assert (result.name, result.error_code) == ("orders", 0)
    with pytest.raises(Refused) as caught:
        broker.partition("orders", 0)
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_is_deleted_by_id_and_answered_with_its_name(delete, broker):
    (result,) = delete(DeleteTopicState(topic_id=A_TOPIC_ID))
    assert (result.name, result.topic_id, result.error_code) == ("orders", A_TOPIC_ID, 0)
    assert "orders" not in broker.image.topics


def test_from_version_6_on_a_name_is_answered_with_the_id_too(delete):
    (result,) = delete(DeleteTopicState(name="orders"))
    assert (result.name, result.topic_id, result.error_code) == ("orders", A_TOPIC_ID, 0)


def test_what_is_not_there_is_refused_by_how_it_was_named(delete):
    by_name, by_id = delete(DeleteTopicState(name="nothing"), DeleteTopicState(topic_id=TopicId(b"x" * 16)))
    assert (by_name.name, by_name.error_code) == ("nothing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert (by_id.name, by_id.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


def test_naming_both_or_neither_is_refused(delete, broker):
    both, neither = delete(DeleteTopicState(name="orders", topic_id=A_TOPIC_ID), DeleteTopicState())
    assert both.error_code == neither.error_code == ErrorCode.INVALID_REQUEST
    assert "orders" in broker.image.topics


def test_a_topic_that_is_named_twice_is_refused_once_and_stays(delete, broker):
    (refused,) = delete("orders", "orders", version=5)
    assert (refused.name, refused.error_code) == ("orders", ErrorCode.INVALID_REQUEST)
    assert "orders" in broker.image.topics


def test_the_brokers_own_topic_cannot_be_deleted(delete, broker):
    (result,) = delete("__consumer_offsets", version=5)
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert "belongs to the brokers" in result.error_message


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (5, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deletion_can_be_forbidden(ask, make_broker, version, code):
    broker = make_broker(delete_topic_enable=False)
    request = DeleteTopicsRequest(topic_names=["__consumer_offsets"], timeout_ms=1000)
    (result,) = ask(delete_topics, request, version, broker).responses
    assert result.error_code == code
