"""Operations that every front end shares, asked as one would that is not Kafka's."""

from __future__ import annotations

import pytest

from zurau.broker import auto_create, config_entries
from zurau.broker.auto_create import create_missing_topics
from zurau.broker.caller import ANONYMOUS, Caller
from zurau.broker.offset_lookup import latest_offset, offset_at_time, offset_of_max_timestamp
from zurau.broker.settings import BrokerSettings
from zurau.errors import Refused
from zurau.log.settings import LogSettings
from zurau.pending import start
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.client import SimulatedClient
from zurau.wire.kafka.error_codes import ErrorCode

CALLER = Caller(ANONYMOUS, "192.0.2.1", "HTTP")


@pytest.fixture
def simulated() -> SimulatedBroker:
    return SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1))


def refuse(caller, permission, resource):
    """What `authorize` does to somebody without rights, once there are rules."""
    raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{caller.principal} may not {permission} {resource}")


def test_what_is_missing_is_created_and_can_be_used_at_once(simulated):
    made = simulated.wait(start(create_missing_topics(["a", "b"], CALLER, simulated.broker)))
    assert made == {}
    assert simulated.broker.partition("b", 0).log.end_offset == 0


def test_nothing_is_created_for_a_caller_who_may_not(simulated, monkeypatch):
    monkeypatch.setattr(auto_create, "authorize", refuse)
    made = simulated.wait(start(create_missing_topics(["a"], CALLER, simulated.broker)))
    assert str(made["a"]).endswith("User:ANONYMOUS may not CREATE TOPIC a")
    assert "a" not in simulated.broker.image.topics


def test_settings_are_not_told_to_a_caller_who_may_not_see_them(simulated, monkeypatch):
    SimulatedClient(simulated).create_topic("t")
    assert config_entries.describe_topic("t", CALLER, simulated.broker)
    monkeypatch.setattr(config_entries, "authorize", refuse)
    with pytest.raises(Refused, match="may not DESCRIBE_CONFIGS TOPIC t"):
        config_entries.describe_topic("t", CALLER, simulated.broker)
    with pytest.raises(Refused, match="may not DESCRIBE_CONFIGS CLUSTER kafka-cluster"):
        config_entries.describe_broker("1", CALLER, simulated.broker)


def test_permission_comes_before_existence(simulated, monkeypatch):
    monkeypatch.setattr(config_entries, "authorize", refuse)
    with pytest.raises(Refused, match="TOPIC_AUTHORIZATION_FAILED"):
        config_entries.describe_topic("absent", CALLER, simulated.broker)


def test_offsets_are_found_by_what_they_stand_for(simulated):
    client = SimulatedClient(simulated)
    client.create_topic("t")
    client.produce("t", client.batch(b"a", b"b"))
    partition, now_ms = simulated.broker.partition("t", 0), simulated.clock.now_ms()
    assert simulated.wait(start(latest_offset(partition, committed_only=True))) == 2
    late = offset_at_time(now_ms + 60_000, partition, CALLER, simulated.broker, committed_only=True)
    assert simulated.wait(start(late)) is None
    youngest = offset_of_max_timestamp(partition, CALLER, simulated.broker, committed_only=True)
    assert simulated.wait(start(youngest))[0] in (0, 1)
