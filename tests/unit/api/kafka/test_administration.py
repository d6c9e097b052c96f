"""The deadline of requests that create, enlarge and delete topics."""

from __future__ import annotations

import pytest

from zurau.log.settings import LogSettings
from zurau.simulation.broker import SimulatedBroker
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest

FLUSH_MS = 500


@pytest.fixture
def broker() -> SimulatedBroker:
    """One with the topic `old`, whose disk takes long for a flush."""
    broker = SimulatedBroker(seed=1, log_settings=LogSettings())
    assert create(broker, 1000, "old") == ErrorCode.NONE
    broker.broker.world.flusher.delay_ms = FLUSH_MS
    return broker


def create(broker: SimulatedBroker, timeout_ms: int, name: str = "new") -> int:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return broker.tell(CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms), 5).topics[0].error_code


def enlarge(broker: SimulatedBroker, timeout_ms: int) -> int:
    topic = CreatePartitionsTopic(name="old", count=2)
    return broker.tell(CreatePartitionsRequest(topics=[topic], timeout_ms=timeout_ms), 1).results[0].error_code


def delete(broker: SimulatedBroker, timeout_ms: int) -> int:
    return broker.tell(DeleteTopicsRequest(topic_names=["old"], timeout_ms=timeout_ms), 5).responses[0].error_code


def topics(broker: SimulatedBroker) -> dict[str, int]:
    """With the number of their partitions."""
    found = broker.broker.image.topics.values()
    return {topic.name: len(topic.partitions) for topic in found if not topic.name.startswith("__")}


CHANGES = [(create, {"old": 1, "new": 1}), (enlarge, {"old": 2}), (delete, {})]


@pytest.mark.parametrize(("change", "after"), CHANGES)
def test_what_is_done_in_time_is_answered_with_success(broker, change, after):
    assert change(broker, 10 * FLUSH_MS) == ErrorCode.NONE
    assert topics(broker) == after


@pytest.mark.parametrize(("change", "after"), CHANGES)
def test_what_takes_longer_has_timed_out_and_goes_on(broker, change, after):
    assert change(broker, FLUSH_MS // 2) == ErrorCode.REQUEST_TIMED_OUT
    assert topics(broker) == {"old": 1}
    broker.clock.advance(10 * FLUSH_MS)
    assert topics(broker) == after


@pytest.mark.parametrize("timeout_ms", [0, -1])
@pytest.mark.parametrize(("change", "after"), CHANGES)
def test_nothing_is_begun_without_time_for_it(broker, change, after, timeout_ms):
    assert change(broker, timeout_ms) == ErrorCode.REQUEST_TIMED_OUT
    broker.clock.advance(10 * FLUSH_MS)
    assert topics(broker) == {"old": 1}
