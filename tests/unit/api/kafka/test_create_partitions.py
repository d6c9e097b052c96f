from __future__ import annotations

import pytest

from zurau.api.kafka import create_partitions
from zurau.ids import TopicId
from zurau.machines.controller.commands import CreateTopic
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)


@pytest.fixture
def broker(broker, settle):
    async def create():
        await broker.controller.submit(CreateTopic("orders", TopicId(bytes(16))))

    settle(create())
    return broker


@pytest.fixture
def grow(ask, broker):
    def run(*topics, version=3, validate_only=False):
        request = CreatePartitionsRequest(topics=list(topics), timeout_ms=1000, validate_only=validate_only)
        return ask(create_partitions, request, version, broker).results

    return run


@pytest.mark.parametrize("version", range(4))
def test_a_topic_grows_and_its_new_partitions_are_served(grow, broker, version):
    (result,) = grow(CreatePartitionsTopic(name="orders", count=3), version=version)
    assert (result.name, result.error_code) == ("orders", 0)
    assert broker.partition("orders", 2).log.end_offset == 0


def test_growth_can_be_tried_without_being_made(grow, broker):
    (result,) = grow(CreatePartitionsTopic(name="orders", count=3), validate_only=True)
    assert result.error_code == 0
    assert len(broker.image.topics["orders"].partitions) == 1


def test_new_partitions_can_be_placed_by_hand(grow, broker):
    assignments = [CreatePartitionsAssignment(broker_ids=[1])]
    (result,) = grow(CreatePartitionsTopic(name="orders", count=2, assignments=assignments))
    assert result.error_code == 0
    assert broker.image.topics["orders"].partitions[1].replicas == (1,)


def test_a_refused_topic_does_not_spoil_the_others(grow):
    results = grow(CreatePartitionsTopic(name="nothing", count=3), CreatePartitionsTopic(name="orders", count=2))
    assert [result.error_code for result in results] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]


def test_a_topic_that_is_named_twice_does_not_grow(grow, broker):
    (result,) = grow(*[CreatePartitionsTopic(name="orders", count=3)] * 2)
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert len(broker.image.topics["orders"].partitions) == 1
