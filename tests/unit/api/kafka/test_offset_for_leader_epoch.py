from __future__ import annotations

import pytest

from zurau.broker.settings import BrokerSettings
from zurau.log.settings import LogSettings
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


@pytest.fixture
def broker() -> SimulatedBroker:
    """Two records in epoch 0, then a restart, then one in epoch 1."""
    broker = SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1))
    client = SimulatedClient(broker)
    client.create_topic("t")
    client.produce("t", client.batch(b"a", b"b"))
    broker.stop()
    broker.start()
    client.produce("t", client.batch(b"c"))
    return broker


@pytest.fixture
def ask(broker):
    def ask(leader_epoch: int, *, topic: str = "t", current: int = -1, version: int = 4):
        wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=leader_epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])])
        return broker.tell(request, version).topics[0].partitions[0]

    return ask


@pytest.mark.parametrize("version", APIS[23].versions)
@pytest.mark.parametrize(("epoch", "end"), [(0, 2), (1, 3)])
def test_every_version_tells_where_an_epoch_ended(ask, version, epoch, end):
    answer = ask(epoch, version=version)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (ErrorCode.NONE, epoch, end)


def test_an_epoch_that_never_was_has_no_end(ask):
    answer = ask(9)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (ErrorCode.NONE, -1, -1)


def test_the_epoch_that_goes_on_ends_where_consumers_may_read_to(ask, broker):
    broker.broker.world.flusher.delay_ms = 10_000
    client = SimulatedClient(broker)
    client.produce_later("t", client.batch(b"d"), acks=1)
    assert ask(1).end_offset == 3


def test_whoever_believes_in_another_epoch_is_told(ask):
    assert ask(0, current=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(0, current=2).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_an_unknown_topic_is_said_so(ask):
    assert ask(0, topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
