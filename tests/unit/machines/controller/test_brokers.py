"""Registration, heartbeats, fencing and controlled shutdown."""

from __future__ import annotations

import pytest
from tests.unit.machines.controller.conftest import ORDERS, SESSION_MS

from zurau.errors import Refused
from zurau.ids import BrokerId, TopicId
from zurau.machines.controller.changes import BrokerAdded, BrokerFencingChanged
from zurau.machines.controller.commands import BrokerDisconnected, BrokerHeartbeat, CreateTopic, RegisterBroker
from zurau.machines.controller.image import Listener
from zurau.wire.kafka.error_codes import ErrorCode


def refusal(ask, *arguments, **rest):
    with pytest.raises(Refused) as caught:
        ask(*arguments, **rest)
    return caught.value


# Registration


def test_a_broker_epoch_is_the_offset_of_the_registration(cluster_of):
    cluster = cluster_of(0)
    assert [cluster.register(1), cluster.register(2)] == [0, 1]
    assert cluster.image.brokers[2].broker_epoch == 1


def test_a_registration_says_where_a_broker_is(cluster):
    cluster.register(2, rack="north", listeners=(Listener("CLIENTS", "10.0.0.2", 9092),))
    assert cluster.image.brokers[2].rack == "north"
    assert cluster.image.brokers[2].listeners == (Listener("CLIENTS", "10.0.0.2", 9092),)


def test_registering_twice_with_the_same_incarnation_writes_once(cluster):
    command = RegisterBroker(BrokerId(2), bytes(16), bytes(16))
    epoch = cluster.ask(command)
    written = len(cluster.records)
    assert cluster.ask(command) == epoch
    assert len(cluster.records) == written


def test_a_broker_that_starts_again_has_a_larger_epoch(cluster):
    before = cluster.image.brokers[1].broker_epoch
    assert cluster.register(1) > before
    assert cluster.changes[-1] == BrokerAdded(BrokerId(1))


def test_another_directory_cannot_take_the_id_of_a_broker_that_is_alive(cluster):
    refused = refusal(cluster.register, 1, directory=9)
    assert refused.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert "another id" in refused.message


def test_another_directory_takes_the_id_of_a_broker_that_is_gone(cluster):
    cluster.lose_sight_of(1)
    cluster.register(1, directory=9)
    assert cluster.image.brokers[1].directory_id == bytes([9]) * 16


def test_an_old_copy_of_a_directory_is_found_out(cluster):
    refused = refusal(cluster.register, 1, remembered_incarnations=(bytes(16),))
    assert refused.code is ErrorCode.INVALID_REGISTRATION
    assert "old copy" in refused.message


def test_a_directory_that_remembers_its_last_start_is_no_old_copy(cluster):
    last = cluster.image.brokers[1].incarnation_id
    assert cluster.register(1, remembered_incarnations=(last, b"never registered")) > 0


# Heartbeats


def test_a_broker_is_fenced_until_it_has_seen_its_registration(cluster):
    epoch = cluster.register(2)
    behind = cluster.ask(BrokerHeartbeat(BrokerId(2), epoch, metadata_offset=epoch - 1))
    assert behind.is_fenced
    assert cluster.image.brokers[2].is_fenced
    assert not cluster.beat(2).is_fenced
    assert cluster.changes[-1] == BrokerFencingChanged(BrokerId(2))


def test_heartbeats_of_a_quiet_cluster_write_nothing(cluster):
    written = len(cluster.records)
    for _ in range(20):
        cluster.stage.advance(400)
        cluster.beat(1)
    assert len(cluster.records) == written


def test_an_earlier_start_of_a_broker_is_not_heard(cluster):
    before = cluster.image.brokers[1].broker_epoch
    cluster.register(1)
    refused = refusal(cluster.ask, BrokerHeartbeat(BrokerId(1), before, 99))
    assert refused.code is ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_never_registered_is_not_heard(cluster):
    refused = refusal(cluster.ask, BrokerHeartbeat(BrokerId(7), 0, 99))
    assert refused.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_silent_broker_is_fenced_and_comes_back_when_it_is_heard(cluster_of):
    cluster = cluster_of(2)
    cluster.lose_sight_of(2)
    assert [broker.is_fenced for broker in cluster.image.brokers.values()] == [False, True]
    cluster.beat(2)
    assert not cluster.image.brokers[2].is_fenced


def test_a_broker_whose_connection_has_ended_is_fenced_sooner_than_one_that_is_silent(cluster_of):
    cluster = cluster_of(2)
    cluster.ask(BrokerDisconnected(BrokerId(2)))
    cluster.stage.advance(SESSION_MS // 8 - 1)
    assert not cluster.image.brokers[2].is_fenced
    cluster.stage.advance(1)
    assert [broker.is_fenced for broker in cluster.image.brokers.values()] == [False, True]


def test_how_long_a_connection_is_gone_counts_from_its_end_and_not_from_when_the_controller_hears_of_it(cluster_of):
    cluster = cluster_of(2)
    cluster.ask(BrokerDisconnected(BrokerId(2), since_ms=SESSION_MS // 8 - 5))
    cluster.stage.advance(4)
    assert not cluster.image.brokers[2].is_fenced
    cluster.stage.advance(1)
    assert cluster.image.brokers[2].is_fenced


def test_a_broker_that_is_heard_after_its_connection_ended_has_a_whole_session(cluster_of):
    cluster = cluster_of(2)
    cluster.ask(BrokerDisconnected(BrokerId(2)))
    cluster.beat(2)
    cluster.stage.advance(SESSION_MS - 1)
    assert not cluster.image.brokers[2].is_fenced


def test_a_connection_that_ends_with_somebody_unknown_changes_nothing(cluster):
    written = len(cluster.records)
    cluster.ask(BrokerDisconnected(BrokerId(7)))
    assert len(cluster.records) == written


def test_a_new_controller_gives_everybody_a_whole_session(cluster_of):
    cluster = cluster_of(2)
    cluster.stage.advance(SESSION_MS - 1)
    cluster.stage.restart()
    cluster.stage.advance(SESSION_MS - 1)
    assert not cluster.image.brokers[1].is_fenced
    cluster.beat(2)
    cluster.stage.advance(1)
    assert [cluster.image.brokers[each].is_fenced for each in (1, 2)] == [True, False]


def test_nobody_is_fenced_while_not_even_the_controllers_own_broker_was_heard(cluster_of):
    cluster = cluster_of(2)
    cluster.stage.advance(SESSION_MS + 1)
    assert not any(broker.is_fenced for broker in cluster.image.brokers.values())
    cluster.beat(2)
    cluster.stage.advance(SESSION_MS // 2)
    cluster.beat(2)
    cluster.stage.advance(SESSION_MS // 2)
    assert [cluster.image.brokers[each].is_fenced for each in (1, 2)] == [True, False]


def test_a_controller_that_was_stopped_for_a_while_fences_nobody_for_that(cluster):
    machine = cluster.stage.machine
    overslept_ms = machine.next_deadline_ms() + SESSION_MS
    assert not machine.time_passed(overslept_ms).records
    assert machine.next_deadline_ms() == overslept_ms + SESSION_MS


def test_a_lone_broker_that_was_stopped_for_a_while_is_not_fenced_by_itself(cluster):
    cluster.stage.advance(SESSION_MS + SESSION_MS // 3)
    assert not cluster.image.brokers[1].is_fenced


def test_what_could_not_be_written_about_a_silent_broker_is_decided_again(cluster_of):
    cluster = cluster_of(2)
    machine = cluster.stage.machine
    first = machine.time_passed(machine.next_deadline_ms())
    assert machine.time_passed(machine.next_deadline_ms()).records == first.records


def test_a_fenced_broker_gets_no_new_replicas(cluster_of):
    cluster = cluster_of(3)
    cluster.lose_sight_of(2)
    topic = cluster.ask(CreateTopic("orders", TopicId(bytes(16)), 6, 1))
    assert {partition.replicas for partition in topic.partitions} == {(1,), (3,)}
    refused = refusal(cluster.ask, CreateTopic("more", TopicId(bytes([9] * 16)), 1, 3))
    assert refused.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert "1 are not there; use 2 or less" in refused.message


# Controlled shutdown


def test_a_lone_broker_may_stop_at_once(cluster):
    assert cluster.beat(1, wants_shutdown=True).should_shut_down
    assert cluster.image.brokers[1].is_fenced


def test_leaders_move_away_before_a_broker_may_stop(cluster_of):
    cluster = cluster_of(3)
    cluster.create_orders(1, 2, 3)
    assert not cluster.beat(1, wants_shutdown=True).should_shut_down
    assert cluster.orders.leader == cluster.replica(2)
    assert cluster.in_sync() == [2, 3]


def test_a_broker_stops_when_the_others_know_that_it_leads_nothing(cluster_of):
    cluster = cluster_of(3)
    cluster.create_orders(1, 2, 3)
    cluster.beat(1, wants_shutdown=True)
    cluster.beat(2)
    assert not cluster.beat(1, wants_shutdown=True).should_shut_down
    cluster.beat(3)
    assert cluster.beat(1, wants_shutdown=True).should_shut_down
    assert cluster.image.brokers[1].is_fenced


def test_a_late_heartbeat_does_not_bring_a_stopped_broker_back(cluster):
    cluster.beat(1, wants_shutdown=True)
    assert cluster.beat(1).is_fenced
    cluster.start(1)
    assert not cluster.image.brokers[1].is_fenced


def test_a_stopping_broker_leads_nothing_again(cluster_of):
    cluster = cluster_of(2)
    cluster.create_orders(1, 2)
    cluster.beat(1, wants_shutdown=True)
    cluster.lose_sight_of(2)
    assert cluster.in_sync() == [2]
    assert cluster.orders.leader is None


def test_a_heartbeat_about_a_topic_that_is_gone_is_heard(cluster):
    assert not cluster.beat(1, failed=frozenset({ORDERS})).is_fenced
