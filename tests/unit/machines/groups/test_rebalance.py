"""The two barriers: everybody joins, the leader shares out, everybody learns its share."""

from __future__ import annotations

from zurau.machines.groups.commands import Acknowledged, Synced
from zurau.machines.groups.members import Protocol
from zurau.wire.kafka.error_codes import ErrorCode


def test_an_empty_group_waits_a_little_for_more_members(stage_with):
    stage = stage_with(initial_rebalance_delay_ms=100)
    request_id = stage.join("a")
    stage.advance(99)
    assert stage.outcome(request_id) is None
    stage.advance(1)
    assert stage.outcome(request_id).generation == 1


def test_newcomers_prolong_the_gathering(stage_with):
    stage = stage_with(initial_rebalance_delay_ms=100)
    first = stage.join("a")
    stage.advance(60)
    stage.join("b")
    stage.advance(60)
    assert stage.outcome(first) is None
    stage.advance(80)
    assert len(stage.outcome(first).members) == 2


def test_gathering_ends_with_the_rebalance_timeout_however_many_come(stage_with):
    stage = stage_with(initial_rebalance_delay_ms=100)
    first = stage.join("a0", rebalance_timeout_ms=250)
    for number in range(1, 5):
        stage.advance(50)
        stage.join(f"a{number}", rebalance_timeout_ms=250)
    stage.advance(50)
    assert len(stage.outcome(first).members) == 5


def test_a_second_member_waits_until_the_first_has_joined_again(stage):
    stage.form("a")
    request_id = stage.join("b")
    assert stage.outcome(request_id) is None
    stage.join("a")
    assert stage.outcome(request_id).generation == 2


def test_the_barrier_waits_for_those_who_were_given_an_id(stage):
    stage.form("a")
    stage.join("b", needs_known_id=True)
    leader = stage.join("a")
    assert stage.outcome(leader) is None
    stage.join("b", needs_known_id=True)
    assert len(stage.outcome(leader).members) == 2


def test_the_barrier_does_not_wait_for_an_id_that_nobody_used(stage):
    stage.form("a")
    stage.join("b", needs_known_id=True)
    leader = stage.join("a")
    stage.advance(10_000)
    assert len(stage.outcome(leader).members) == 1


def test_who_does_not_join_before_the_rebalance_timeout_is_left_behind(stage):
    stage.form("a", "b")
    request_id = stage.join("a")
    for _ in range(6):
        assert stage.heartbeat("b") is ErrorCode.REBALANCE_IN_PROGRESS
        stage.advance(5_000)
    assert [member.member_id for member in stage.outcome(request_id).members] == ["a"]
    assert stage.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_another_member_leads_when_the_leader_does_not_come(stage):
    stage.form("a", "b")
    request_id = stage.join("b", protocols=(Protocol("range", b"new"),))
    stage.advance(10_000)
    assert stage.outcome(request_id).leader_id == "b"


def test_everybody_gets_the_share_that_the_leader_computed(stage):
    stage.join("a")
    stage.join("b")
    stage.join("a")
    follower = stage.sync("b")
    assert stage.outcome(follower) is None
    leader = stage.sync("a", {"a": b"0,1", "b": b"2"})
    assert stage.outcome(leader) == Synced("consumer", "range", b"0,1")
    assert stage.outcome(follower) == Synced("consumer", "range", b"2")
    assert stage.state == "Stable"


def test_a_member_that_the_leader_forgot_gets_an_empty_share(stage):
    stage.join("a")
    stage.join("b")
    stage.join("a")
    follower = stage.sync("b")
    stage.sync("a", {"a": b"all"})
    assert stage.outcome(follower).assignment == b""


def test_a_share_can_be_fetched_again_while_the_group_is_stable(stage):
    stage.form("a", "b")
    assert stage.outcome(stage.sync("b")).assignment == b"b"


def test_a_sync_of_another_generation_is_refused(stage):
    stage.form("a")
    assert stage.outcome(stage.sync("a", generation=7)) is ErrorCode.ILLEGAL_GENERATION


def test_a_sync_of_a_stranger_is_refused(stage):
    stage.form("a")
    assert stage.outcome(stage.sync("x")) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_to_a_group_that_does_not_exist_is_refused(stage):
    assert stage.outcome(stage.sync("a", group_id="none", generation=1)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_under_another_protocol_is_refused(stage):
    stage.form("a")
    assert stage.outcome(stage.sync("a", protocol="sticky")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert stage.outcome(stage.sync("a", protocol_type="connect")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_sync_during_the_join_barrier_is_refused(stage):
    stage.form("a", "b")
    stage.join("a")
    assert stage.outcome(stage.sync("b")) is ErrorCode.REBALANCE_IN_PROGRESS


def test_who_waits_for_a_share_is_sent_to_join_when_another_rebalance_begins(stage):
    stage.join("a")
    stage.join("b")
    stage.join("a")
    waiting = stage.sync("b")
    stage.join("c")
    assert stage.outcome(waiting) is ErrorCode.REBALANCE_IN_PROGRESS


def test_of_two_syncs_of_one_member_the_newer_one_waits_and_the_older_one_is_answered(stage):
    stage.join("a")
    stage.join("b")
    stage.join("a")
    older, newer = stage.sync("b"), stage.sync("b")
    assert stage.outcome(older) is ErrorCode.REBALANCE_IN_PROGRESS
    stage.sync("a", {"b": b"share"})
    assert stage.outcome(newer).assignment == b"share"


def test_who_does_not_fetch_its_share_in_time_is_removed(stage):
    stage.join("a")
    stage.join("b")
    stage.join("a")
    stage.sync("a")
    for _ in range(6):
        stage.advance(5_000)
        stage.heartbeat("a")
        stage.heartbeat("b")
    assert stage.state == "PreparingRebalance"
    assert stage.heartbeat("b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_never_shares_out_is_removed_and_the_others_go_on(stage):
    stage.join("a")
    stage.join("b")
    stage.join("a")
    waiting = stage.sync("b")
    for _ in range(6):
        assert stage.heartbeat("a") == Acknowledged()
        stage.advance(5_000)
    assert stage.outcome(waiting) is ErrorCode.REBALANCE_IN_PROGRESS
    assert stage.outcome(stage.join("b")).leader_id == "b"


def test_a_stable_group_has_only_sessions_and_the_sweep_on_the_clock(stage):
    stage.form("a")
    assert stage.machine.next_deadline_ms() == stage.now_ms + 10_000


def test_cooperative_members_hand_over_in_two_rebalances(stage):
    """Metadata and assignments are opaque, so KIP-429 needs nothing of us but quick rebalances."""
    stage.form("a", protocols=(Protocol("cooperative-sticky", b"owns nothing"),))
    owner = (Protocol("cooperative-sticky", b"owns 0,1"),)
    newcomer = stage.join("b", protocols=(Protocol("cooperative-sticky", b"owns nothing"),))
    stage.join("a", protocols=owner)
    stage.sync("a", {"a": b"0", "b": b""})
    assert stage.outcome(stage.sync("b")).assignment == b""
    assert stage.outcome(newcomer).generation == 2

    # The owner gave up what it lost and joins again at once; the newcomer is told by its heartbeat.
    again = stage.join("a", protocols=(Protocol("cooperative-sticky", b"owns 0"),))
    assert stage.heartbeat("b") is ErrorCode.REBALANCE_IN_PROGRESS
    stage.join("b", protocols=(Protocol("cooperative-sticky", b"owns nothing"),))
    assert stage.outcome(again).members[0].metadata == b"owns 0"
    stage.sync("a", {"a": b"0", "b": b"1"})
    assert stage.outcome(stage.sync("b")).assignment == b"1"


def test_an_agreement_too_large_for_one_record_is_refused(stage_with):
    stage = stage_with(group_bytes_max=1024)
    stage.join("a")
    assert stage.outcome(stage.sync("a", {"a": bytes(2000)})) is ErrorCode.UNKNOWN_SERVER_ERROR
