"""How groups and offsets end."""

from __future__ import annotations

import pytest

from zurau.ids import NO_TOPIC_ID, TopicId, TopicPartition
from zurau.machines.groups import group as group_module
from zurau.machines.groups.commands import (
    Acknowledged,
    DeleteGroup,
    DeleteOffsets,
    ForgetTopics,
    GroupList,
    ListGroups,
    NewOffset,
    OffsetsDeleted,
    Unfinished,
)
from zurau.machines.groups.members import Protocol
from zurau.settings import DAY_MS, HOUR_MS
from zurau.wire.kafka.error_codes import ErrorCode

ORDERS, BILLS = TopicPartition("orders", 0), TopicPartition("bills", 0)
A_TOPIC_ID = TopicId(bytes(range(16)))
WEEK_MS = 7 * DAY_MS
ORDERS_GONE = frozenset({("orders", NO_TOPIC_ID)})


def delete(stage):
    return stage.outcome(stage.ask(DeleteGroup("readers")))


def delete_offsets(stage, *partitions):
    return stage.outcome(stage.ask(DeleteOffsets("readers", partitions)))


@pytest.fixture
def patient(stage_with):
    """A stable group of one member that may be silent for two hours."""
    stage = stage_with(session_timeout_max_ms=2 * HOUR_MS)
    stage.form("a", session_timeout_ms=2 * HOUR_MS)
    return stage


def keep_alive(stage, days):
    for _ in range(days * 24):
        stage.advance(HOUR_MS)
        stage.heartbeat("a")


def test_an_empty_group_is_deleted_with_its_offsets(stage):
    stage.commit("orders", 5)
    assert delete(stage) == Acknowledged()
    stage.restart()
    assert stage.outcome(stage.ask(ListGroups())) == GroupList(())


def test_a_group_with_members_is_not_deleted(stage):
    stage.form("a")
    assert delete(stage) is ErrorCode.NON_EMPTY_GROUP


def test_a_group_that_does_not_exist_is_not_deleted(stage):
    assert delete(stage) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_deleted_group_begins_anew(stage):
    stage.form("a")
    stage.leave("a")
    delete(stage)
    assert stage.outcome(stage.join("b")).generation == 1


def test_offsets_of_topics_in_use_are_not_deleted(stage):
    stage.form("a")
    for topic in ("orders", "bills"):
        stage.commit(topic, 5, "a", stage.generation)
    reply = delete_offsets(stage, ORDERS, BILLS)
    assert reply == OffsetsDeleted({ORDERS: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, BILLS: ErrorCode.NONE})
    assert stage.committed() == {"orders": 5}


def test_offsets_of_an_empty_group_are_deleted(stage):
    stage.commit("orders", 5)
    assert delete_offsets(stage, ORDERS) == OffsetsDeleted({ORDERS: ErrorCode.NONE})
    assert stage.committed() == {}


def test_an_unreadable_subscription_may_be_to_any_topic(stage):
    stage.form("a", protocols=(Protocol("range", b"?"),))
    reply = delete_offsets(stage, BILLS)
    assert reply == OffsetsDeleted({BILLS: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC})


def test_more_topics_than_can_be_searched_for_at_once_may_all_be_in_use(stage, monkeypatch):
    stage.form("a")
    (offered,) = stage.machine.groups["readers"].members["a"].protocols
    monkeypatch.setattr(group_module, "SEARCHED_BYTES_MAX", 2 * len(offered.metadata) - 1)
    assert delete_offsets(stage, BILLS) == OffsetsDeleted({BILLS: ErrorCode.NONE})
    both = delete_offsets(stage, ORDERS, BILLS)
    assert both == OffsetsDeleted(dict.fromkeys((ORDERS, BILLS), ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC))


def test_offsets_of_members_who_are_no_consumers_are_not_deleted(stage):
    stage.form("a", protocol_type="connect")
    assert delete_offsets(stage, ORDERS) is ErrorCode.NON_EMPTY_GROUP


def test_offsets_of_a_group_that_does_not_exist_are_not_deleted(stage):
    assert delete_offsets(stage, ORDERS) is ErrorCode.GROUP_ID_NOT_FOUND


def test_the_offsets_of_a_deleted_topic_are_forgotten_in_every_group(stage):
    stage.commit("orders", 5)
    stage.commit("orders", 5, group_id="others")
    stage.commit("bills", 6)
    assert stage.outcome(stage.ask(ForgetTopics(ORDERS_GONE))) == Acknowledged()
    assert stage.committed() == {"bills": 6}
    assert stage.machine.groups["others"].offsets == {}


def test_offsets_in_another_topic_of_the_same_name_are_not_forgotten(stage):
    stage.commit("orders", 0, offsets={ORDERS: NewOffset(5, topic_id=A_TOPIC_ID)})
    stage.ask(ForgetTopics(frozenset({("orders", TopicId(bytes(16 * [9])))})))
    assert stage.committed() == {"orders": 5}
    stage.ask(ForgetTopics(frozenset({("orders", A_TOPIC_ID)})))
    assert stage.committed() == {}


def test_which_topic_was_meant_is_known_after_a_restart(stage):
    stage.commit("orders", 0, offsets={ORDERS: NewOffset(5, topic_id=A_TOPIC_ID)})
    stage.commit("bills", 6)
    stage.restart()
    assert stage.machine.topics() == {("orders", A_TOPIC_ID), ("bills", NO_TOPIC_ID)}


def test_offsets_expire_a_week_after_the_group_became_empty(patient):
    patient.commit("orders", 5, "a", patient.generation)
    keep_alive(patient, days=3)
    patient.leave("a")
    patient.advance(WEEK_MS - HOUR_MS)
    assert patient.committed() == {"orders": 5}
    patient.advance(2 * HOUR_MS)
    assert not patient.machine.groups


def test_offsets_of_a_simple_consumer_expire_a_week_after_the_last_commit(stage):
    stage.commit("orders", 5)
    stage.advance(WEEK_MS - HOUR_MS)
    stage.commit("bills", 6)
    stage.advance(2 * HOUR_MS)
    assert stage.committed() == {"bills": 6}


def test_a_commit_from_outside_keeps_an_empty_group_alive(stage):
    stage.form("a")
    stage.leave("a")
    stage.commit("orders", 5)
    stage.advance(WEEK_MS - HOUR_MS)
    stage.commit("orders", 5)
    stage.advance(2 * HOUR_MS)
    assert stage.committed() == {"orders": 5}


def test_offsets_of_topics_in_use_never_expire(patient):
    patient.commit("orders", 5, "a", patient.generation)
    keep_alive(patient, days=8)
    assert patient.committed() == {"orders": 5}


def test_offsets_of_topics_that_are_no_longer_subscribed_to_expire(patient):
    patient.commit("bills", 5, "a", patient.generation)
    keep_alive(patient, days=8)
    assert patient.committed() == {}
    assert patient.state == "Stable"


def test_an_old_client_may_say_how_long_its_offsets_live(stage):
    stage.commit("orders", 5, retention_ms=HOUR_MS)
    stage.restart()
    stage.advance(2 * HOUR_MS)
    assert not stage.machine.groups


def test_an_empty_group_without_offsets_is_removed(stage):
    stage.form("a")
    stage.leave("a")
    stage.advance(HOUR_MS)
    assert not stage.machine.groups
    assert stage.machine.next_deadline_ms() is None


def test_nothing_expires_in_the_middle_of_a_rebalance(stage_with):
    stage = stage_with(offsets_check_interval_ms=1_000)
    stage.commit("bills", 5, retention_ms=500)
    stage.join("a")
    stage.advance(5_000)
    assert stage.committed() == {"bills": 5}


def test_nothing_expires_while_members_may_use_it_for_all_we_know(stage_with):
    stage = stage_with(offsets_check_interval_ms=1_000)
    stage.commit("bills", 5, retention_ms=500)
    stage.form("a", protocol_type="connect")
    stage.advance(5_000)
    assert stage.committed() == {"bills": 5}


def test_an_id_that_was_given_out_does_not_outlive_its_group(stage):
    stage.join("a", needs_known_id=True)
    delete(stage)
    stage.advance(10_000)
    assert not stage.machine.groups


def many_offsets(count=2500):
    return {TopicPartition("orders", number): NewOffset(1) for number in range(count)}


def test_a_group_of_many_offsets_is_deleted_in_several_decisions(stage):
    stage.commit("", 0, offsets=many_offsets())
    assert [isinstance(delete(stage), Unfinished) for _ in range(3)] == [True, True, False]
    assert stage.machine.groups == {}


def test_a_topic_of_many_offsets_is_forgotten_in_several_decisions_and_its_namesake_is_not(stage):
    stage.commit("", 0, offsets=many_offsets())
    unfinished = stage.outcome(stage.ask(ForgetTopics(ORDERS_GONE)))
    stage.advance(1)
    stage.commit("orders", 7)
    while isinstance(unfinished, Unfinished):
        unfinished = stage.outcome(stage.ask(ForgetTopics(ORDERS_GONE, unfinished.now_ms)))
    assert stage.committed() == {"orders": 7}


def test_many_expired_offsets_are_removed_one_decision_after_the_other(stage):
    stage.commit("", 0, offsets=many_offsets())
    stage.advance(WEEK_MS + HOUR_MS)
    assert stage.machine.groups == {}
