from __future__ import annotations

import pytest

from zurau.broker import progress
from zurau.broker.settings import BrokerSettings
from zurau.errors import Refused
from zurau.log.settings import LogSettings
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient
from zurau.wire.kafka.error_codes import ErrorCode


@pytest.fixture(scope="module")
def broker():
    return SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=50)).broker


@pytest.mark.parametrize(
    ("group_id", "index"), [("", 0), ("a", 47), ("test-group", 12), ("polygenelubricants", 0), ("grüße", 23)]
)
def test_a_group_lives_where_kafka_would_put_it(broker, group_id, index):
    """`Utils.abs(groupId.hashCode()) % 50`, in which the smallest number of all counts as 0."""
    assert broker.groups_of(group_id).partition.name.partition == index


def test_a_partition_that_does_not_exist_is_refused(broker):
    with pytest.raises(Refused) as caught:
        broker.partition("nowhere", 0)
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_two_starts_are_of_one_cluster():
    simulated = SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1))
    first = simulated.broker.identity
    simulated.stop()
    simulated.start()
    assert simulated.broker.identity == first


def test_a_start_that_takes_long_says_how_far_it_is(monkeypatch, caplog):
    broker = SimulatedBroker(seed=1, log_settings=LogSettings())
    SimulatedClient(broker).create_topic("orders", partitions=9)
    broker.kill()
    monkeypatch.setattr(progress, "PROGRESS_MS", -1)
    with caplog.at_level("INFO", "zurau.broker"):
        broker.start()
    assert "starting: 6 of 11 partitions are open" in caplog.text
