"""How members stay in a group, and how they go."""

from __future__ import annotations

from zurau.machines.groups.commands import Acknowledged, Leaver, Left
from zurau.wire.kafka.error_codes import ErrorCode


def test_a_heartbeat_of_a_member_is_acknowledged(stage):
    stage.form("a")
    assert stage.heartbeat("a") == Acknowledged()


def test_a_heartbeat_of_a_stranger_is_refused(stage):
    stage.form("a")
    assert stage.heartbeat("x") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_to_a_group_that_does_not_exist_is_refused(stage):
    assert stage.heartbeat("a", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_of_another_generation_is_refused(stage):
    stage.form("a")
    assert stage.heartbeat("a", generation=7) is ErrorCode.ILLEGAL_GENERATION


def test_a_heartbeat_during_the_join_barrier_says_that_there_is_a_rebalance(stage):
    stage.form("a")
    stage.join("b")
    assert stage.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_heartbeat_between_the_barriers_is_acknowledged(stage):
    stage.join("a")
    assert stage.heartbeat("a") == Acknowledged()


def test_a_member_that_is_heard_of_stays(stage):
    stage.form("a")
    for _ in range(5):
        stage.advance(9_999)
        assert stage.heartbeat("a") == Acknowledged()


def test_a_member_that_is_not_heard_of_is_removed_and_the_others_rebalance(stage):
    stage.form("a", "b")
    stage.advance(5_000)
    stage.heartbeat("a")
    stage.advance(5_000)
    assert stage.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_whose_last_member_is_gone_is_empty(stage):
    stage.form("a")
    before = stage.generation
    stage.advance(10_000)
    assert (stage.state, stage.generation) == ("Empty", before + 1)


def test_a_member_at_the_barrier_needs_no_heartbeats(stage):
    stage.form("a", "b")
    waiting = stage.join("a")
    for _ in range(3):
        stage.heartbeat("b")
        stage.advance(9_000)
    stage.join("b")
    assert stage.outcome(waiting).member_id == "a"


def test_a_new_member_does_not_wait_at_the_barrier_for_ever(stage):
    stage.form("a", instance_id="desk", rebalance_timeout_ms=1_800_000, session_timeout_ms=1_800_000)
    waiting = stage.join("b", rebalance_timeout_ms=1_800_000)
    stage.advance(5 * 60_000)
    assert stage.outcome(waiting) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_leaves_makes_a_rebalance(stage):
    stage.form("a", "b")
    assert stage.leave("b") == Left((ErrorCode.NONE,))
    assert stage.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_last_member_that_leaves_leaves_an_empty_group(stage):
    stage.form("a")
    stage.leave("a")
    assert stage.state == "Empty"
    assert stage.describe().protocol_type == "consumer"


def test_who_leaves_while_others_wait_for_it_lets_them_go_on(stage):
    stage.form("a", "b")
    waiting = stage.join("a")
    stage.leave("b")
    assert len(stage.outcome(waiting).members) == 1


def test_a_member_that_is_made_to_leave_the_barrier_is_told(stage):
    stage.form("a", "b")
    waiting = stage.join("a")
    stage.leave("a")
    assert stage.outcome(waiting) is ErrorCode.UNKNOWN_MEMBER_ID


def test_several_members_leave_at_once_and_each_has_its_code(stage):
    stage.form("a", "b", "c")
    left = stage.leave("a", "x", "b")
    assert left == Left((ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE))
    assert [member.member_id for member in stage.describe().members] == ["c"]


def test_leaving_a_group_that_does_not_exist_is_answered_for_each(stage):
    assert stage.leave("a", "b") == Left((ErrorCode.UNKNOWN_MEMBER_ID,) * 2)


def test_who_gives_an_id_back_does_not_disturb_a_stable_group(stage):
    stage.form("a")
    stage.join("b", needs_known_id=True)
    assert stage.leave("b") == Left((ErrorCode.NONE,))
    assert stage.state == "Stable"


def test_who_gives_an_id_back_is_no_longer_waited_for(stage):
    stage.form("a")
    stage.join("b", needs_known_id=True)
    waiting = stage.join("a")
    stage.leave("b")
    assert stage.outcome(waiting).generation == 2


def test_an_operator_removes_a_static_member_by_its_instance_id(stage):
    stage.form("a", instance_id="desk")
    assert stage.leave(Leaver("", "desk")) == Left((ErrorCode.NONE,))
    assert stage.state == "Empty"


def test_a_static_member_cannot_be_removed_under_an_old_id(stage):
    stage.form("a", instance_id="desk")
    assert stage.leave(Leaver("old", "desk")) == Left((ErrorCode.FENCED_INSTANCE_ID,))


def test_an_unknown_instance_id_cannot_leave(stage):
    stage.form("a")
    assert stage.leave(Leaver("", "none")) == Left((ErrorCode.UNKNOWN_MEMBER_ID,))


def test_a_heartbeat_from_the_barrier_starts_no_session(stage):
    stage.form("a", "b")
    waiting = stage.join("a")
    assert stage.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(2):
        stage.advance(9_000)
        stage.heartbeat("b")
    stage.join("b")
    assert stage.outcome(waiting).generation == stage.generation
