"""Static members (KIP-345): an instance id keeps its place in the group across restarts of the process."""

from __future__ import annotations

import pytest

from zurau.machines.groups.members import Protocol
from zurau.wire.kafka.codec import encode_versioned
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)


@pytest.fixture
def desk(stage):
    """A stable group: `a` leads, `b` is the static member at the desk."""
    stage.join("a")
    stage.join("b", instance_id="desk")
    stage.join("a")
    stage.sync("a", {"a": b"a's", "b": b"b's"})
    stage.sync("b", instance_id="desk")
    stage.answers.clear()
    return stage


def come_back(stage, new_id, **changes):
    return stage.ask(stage.join_command(new_id, instance_id="desk", **changes))


def test_a_restarted_static_member_takes_its_place_without_a_rebalance(desk):
    before = desk.generation
    joined = desk.outcome(come_back(desk, "b2"))
    assert (joined.member_id, joined.generation, desk.state) == ("b2", before, "Stable")
    assert desk.outcome(desk.sync("b2", instance_id="desk")).assignment == b"b's"


def test_whoever_uses_the_old_id_is_fenced(desk):
    come_back(desk, "b2")
    assert desk.heartbeat("b", instance_id="desk") is ErrorCode.FENCED_INSTANCE_ID
    assert desk.outcome(desk.sync("b", instance_id="desk")) is ErrorCode.FENCED_INSTANCE_ID
    assert desk.outcome(desk.ask(desk.join_command("x", member_id="b", instance_id="desk"))) is (
        ErrorCode.FENCED_INSTANCE_ID
    )


def test_a_commit_under_the_old_id_is_fenced(desk):
    come_back(desk, "b2")
    code = desk.commit("orders", 5, "b", desk.generation, instance_id="desk")
    assert code is ErrorCode.FENCED_INSTANCE_ID


def test_the_new_id_survives_a_restart_of_the_broker(desk):
    come_back(desk, "b2")
    desk.restart()
    assert desk.outcome(desk.sync("b2", instance_id="desk")).assignment == b"b's"


def test_a_static_member_that_subscribes_to_something_else_makes_a_rebalance(desk):
    other = encode_versioned(ConsumerProtocolSubscription(topics=["bills"]), 0)
    assert desk.outcome(come_back(desk, "b2", protocols=(Protocol("range", other),))) is None
    assert desk.state == "PreparingRebalance"


def test_what_a_static_member_owned_before_is_no_change_of_its_subscription(desk):
    owned = [TopicPartition(topic="orders", partitions=[1])]
    same = encode_versioned(ConsumerProtocolSubscription(topics=["orders"], owned_partitions=owned), 1)
    assert desk.outcome(come_back(desk, "b2", protocols=(Protocol("range", same),))).generation == desk.generation


def test_outside_of_consumers_every_byte_of_a_subscription_counts(stage):
    stage.form("a", instance_id="desk", protocol_type="connect", protocols=(Protocol("eager", b"1"),))
    request_id = come_back(stage, "a2", protocol_type="connect", protocols=(Protocol("eager", b"2"),))
    assert stage.outcome(request_id).generation == 2


def test_a_static_leader_that_comes_back_is_told_not_to_share_out_again(stage):
    stage.form("a", instance_id="desk")
    joined = stage.outcome(come_back(stage, "a2"))
    assert (joined.leader_id, joined.skip_assignment) == ("a2", True)
    assert [member.member_id for member in joined.members] == ["a2"]


def test_an_old_client_that_led_is_not_told_that_it_leads(stage):
    stage.form("a", instance_id="desk")
    joined = stage.outcome(come_back(stage, "a2", can_skip_assignment=False))
    assert (joined.leader_id, joined.members, joined.skip_assignment) == ("a", (), False)
    assert stage.outcome(stage.sync("a2", instance_id="desk")).assignment == b"a"


def test_a_static_member_that_waits_is_fenced_by_its_successor(desk):
    waiting = desk.join("b", instance_id="desk", protocols=(Protocol("range", b"new"),))
    come_back(desk, "b2", protocols=(Protocol("range", b"new"),))
    assert desk.outcome(waiting) is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_comes_back_between_the_barriers_makes_a_rebalance(stage):
    stage.join("a", instance_id="desk")
    joined = stage.outcome(come_back(stage, "a2"))
    assert (joined.member_id, joined.generation) == ("a2", 2)


def test_a_static_member_that_is_away_keeps_its_place_through_a_rebalance(stage):
    patient = {"session_timeout_ms": 120_000}
    stage.join("a", **patient)
    stage.join("b", instance_id="desk", **patient)
    stage.join("a", **patient)
    stage.sync("a", {"a": b"a's", "b": b"b's"})
    leader = stage.join("a", **patient)
    stage.advance(30_000)
    assert [member.member_id for member in stage.outcome(leader).members] == ["a", "b"]
    stage.sync("a", {"a": b"a's", "b": b"kept"})
    come_back(stage, "b2", **patient)
    assert stage.outcome(stage.sync("b2", instance_id="desk")).assignment == b"kept"


def test_a_group_of_absent_static_members_waits_for_one_of_them(stage):
    stage.form("a", instance_id="desk", session_timeout_ms=120_000)
    stage.join("b")
    stage.leave("b")
    stage.advance(31_000)
    assert stage.state == "PreparingRebalance"
    assert stage.outcome(come_back(stage, "a2", session_timeout_ms=120_000)).member_id == "a2"


def test_a_static_member_expires_like_any_other(desk):
    desk.advance(10_000)
    assert desk.heartbeat("b", instance_id="desk") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_leader_that_is_away_leads_no_longer(stage):
    stage.form("a", instance_id="desk", session_timeout_ms=120_000)
    request_id = stage.join("b")
    stage.advance(30_000)
    joined = stage.outcome(request_id)
    assert (joined.leader_id, len(joined.members)) == ("b", 2)


def test_a_static_member_that_crashed_in_the_middle_of_a_handover_makes_a_rebalance(stage):
    """It was to give up partition 1 and join again; if it just went on, nobody would ever own that one."""

    def orders(*indexes):
        return [TopicPartition(topic="orders", partitions=list(indexes))]

    owned_two = encode_versioned(ConsumerProtocolSubscription(topics=["orders"], owned_partitions=orders(0, 1)), 1)
    given_one = encode_versioned(ConsumerProtocolAssignment(assigned_partitions=orders(0)), 1)
    stage.join("a", instance_id="desk", protocols=(Protocol("range", owned_two),))
    stage.sync("a", {"a": given_one})
    assert stage.outcome(come_back(stage, "a2")).generation == 2
