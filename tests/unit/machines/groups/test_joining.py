"""Who may join a group, and what it means for those who are in it."""

from __future__ import annotations

import pytest

from zurau.machines.groups import group, joining, members
from zurau.machines.groups.commands import MemberIdRequired
from zurau.machines.groups.joining import PENDING_IDS_MAX, PROTOCOLS_MAX
from zurau.machines.groups.members import Protocol
from zurau.settings import MIB
from zurau.wire.kafka.error_codes import ErrorCode

RANGE = Protocol("range", b"r")
STICKY = Protocol("sticky", b"s")
ROBIN = Protocol("roundrobin", b"o")


def test_a_first_join_is_answered_with_an_id_only(stage):
    reply = stage.outcome(stage.join("a", needs_known_id=True))
    assert reply == MemberIdRequired("a")
    assert stage.describe().members == ()


def test_who_comes_back_with_the_id_it_was_given_is_a_member(stage):
    stage.join("a", needs_known_id=True)
    joined = stage.outcome(stage.join("a", needs_known_id=True))
    assert (joined.member_id, joined.leader_id, joined.generation) == ("a", "a", 1)


def test_old_clients_are_members_at_once(stage):
    assert stage.outcome(stage.join("a", needs_known_id=False)).member_id == "a"


def test_static_members_are_members_at_once(stage):
    joined = stage.outcome(stage.join("a", instance_id="desk", needs_known_id=True))
    assert joined.member_id == "a"


def test_an_id_that_is_not_used_in_time_is_worth_nothing(stage):
    stage.join("a", needs_known_id=True)
    stage.advance(10_000)
    late = stage.ask(stage.join_command("x", member_id="a"))
    assert stage.outcome(late) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_was_never_given_out_is_refused(stage):
    request_id = stage.ask(stage.join_command("x", member_id="made-up"))
    assert stage.outcome(request_id) is ErrorCode.UNKNOWN_MEMBER_ID
    assert not stage.machine.groups


def test_a_group_without_a_name_is_refused(stage):
    request_id = stage.ask(stage.join_command("a", group_id=""))
    assert stage.outcome(request_id) is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("session_timeout_ms", [5_999, 1_800_001])
def test_session_timeouts_out_of_bounds_are_refused(stage, session_timeout_ms):
    request_id = stage.join("a", session_timeout_ms=session_timeout_ms)
    assert stage.outcome(request_id) is ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("changes", [{"protocols": ()}, {"protocol_type": ""}])
def test_a_member_that_speaks_no_protocol_is_refused(stage, changes):
    assert stage.outcome(stage.join("a", **changes)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_with_no_protocol_in_common_is_refused(stage):
    stage.join("a", protocols=(RANGE, STICKY))
    assert stage.outcome(stage.join("b", protocols=(ROBIN,))) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_of_another_protocol_type_is_refused(stage):
    stage.join("a")
    assert stage.outcome(stage.join("b", protocol_type="connect")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_lone_member_may_change_its_protocols(stage):
    stage.form("a")
    assert stage.outcome(stage.join("a", protocols=(ROBIN,))).protocol == "roundrobin"


def test_the_protocol_with_most_votes_is_chosen(stage_with):
    stage = stage_with(initial_rebalance_delay_ms=100)
    request_id = stage.join("a", protocols=(RANGE, STICKY))
    stage.join("b", protocols=(STICKY, RANGE))
    stage.join("c", protocols=(STICKY, RANGE))
    stage.advance(200)
    assert stage.outcome(request_id).protocol == "sticky"


def test_a_protocol_that_one_member_does_not_speak_is_not_chosen(stage_with):
    stage = stage_with(initial_rebalance_delay_ms=100)
    request_id = stage.join("a", protocols=(RANGE, STICKY))
    stage.join("b", protocols=(RANGE, STICKY))
    stage.join("c", protocols=(STICKY,))
    stage.advance(200)
    assert stage.outcome(request_id).protocol == "sticky"


def test_a_full_group_refuses_newcomers(stage_with):
    stage = stage_with(group_size_max=2)
    stage.form("a", "b")
    assert stage.outcome(stage.join("c")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert stage.state == "Stable"


def test_a_full_group_lets_its_members_join_again(stage_with):
    stage = stage_with(group_size_max=2)
    stage.form("a", "b")
    stage.join("a")
    stage.join("b")
    assert stage.state == "CompletingRebalance"


def test_a_follower_that_joins_again_unchanged_is_told_the_current_generation(stage):
    stage.form("a", "b")
    before = stage.generation
    joined = stage.outcome(stage.join("b"))
    assert (joined.generation, joined.members, stage.state) == (before, (), "Stable")


def test_a_follower_that_joins_again_with_another_subscription_makes_a_rebalance(stage):
    stage.form("a", "b")
    assert stage.outcome(stage.join("b", protocols=(Protocol("range", b"new"),))) is None
    assert stage.state == "PreparingRebalance"


def test_a_leader_that_joins_again_makes_a_rebalance(stage):
    stage.form("a", "b")
    assert stage.outcome(stage.join("a")) is None
    assert stage.state == "PreparingRebalance"


def test_a_member_that_missed_the_answer_to_its_join_is_told_again(stage):
    first = stage.outcome(stage.join("a"))
    again = stage.outcome(stage.join("a"))
    assert again == first
    assert stage.state == "CompletingRebalance"


def test_a_member_that_changes_its_mind_between_the_barriers_makes_a_rebalance(stage):
    stage.join("a")
    joined = stage.outcome(stage.join("a", protocols=(Protocol("range", b"new"),)))
    assert joined.generation == 2
    assert joined.members[0].metadata == b"new"


def test_of_two_joins_of_one_member_the_newer_one_waits_and_the_older_one_is_answered(stage):
    stage.form("a", "b")
    older = stage.join("a")
    newer = stage.join("a")
    assert stage.outcome(older) is ErrorCode.REBALANCE_IN_PROGRESS
    stage.join("b")
    assert stage.outcome(newer).member_id == "a"


def test_only_the_leader_is_told_what_the_others_subscribe_to(stage):
    stage.join("a", protocols=(RANGE,))
    follower = stage.join("b", protocols=(Protocol("range", b"of b"),))
    leader = stage.join("a", protocols=(RANGE,))
    assert [(m.member_id, m.metadata) for m in stage.outcome(leader).members] == [("a", b"r"), ("b", b"of b")]
    assert stage.outcome(follower).members == ()


def test_more_protocols_than_any_client_offers_are_refused(stage):
    protocols = tuple(Protocol(f"p{number}", b"") for number in range(PROTOCOLS_MAX + 1))
    assert stage.outcome(stage.join("a", protocols=protocols)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    stage.join("a", protocols=protocols[1:])
    assert stage.state == "CompletingRebalance"


class Compared(str):
    """A name that counts how often it is held against another."""

    __slots__ = ()
    count = 0

    def __eq__(self, other: object) -> bool:
        Compared.count += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_what_a_join_costs_does_not_grow_with_the_protocols_of_all_others(stage):
    def protocols() -> tuple[Protocol, ...]:
        return tuple(Protocol(Compared(f"p{number}"), b"") for number in range(PROTOCOLS_MAX))

    for number in range(50):
        stage.join(f"m{number}", protocols=protocols())
    stage.join("last", protocols=protocols()[-1:])
    Compared.count = 0
    stage.join("one more", protocols=protocols())
    assert Compared.count < 5 * PROTOCOLS_MAX


def test_what_members_spoke_counts_no_more_when_they_change_or_leave(stage):
    stage.join("a", protocols=(RANGE, STICKY))
    stage.join("b", protocols=(RANGE, STICKY))
    stage.join("a", protocols=(STICKY,))
    assert stage.outcome(stage.join("c", protocols=(RANGE,))) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    stage.leave("a")
    stage.join("c", protocols=(RANGE,))
    assert stage.outcome(stage.join("d", protocols=(STICKY,))) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    stage.leave("b")
    stage.leave("c")
    assert stage.outcome(stage.join("d", protocols=(STICKY,))).protocol == "sticky"


def test_members_who_say_too_much_together_find_the_group_full(stage_with):
    stage = stage_with(group_bytes_max=1024)
    large = (Protocol("range", bytes(600)),)
    stage.join("a", protocols=large)
    assert stage.outcome(stage.join("b", protocols=large)) is ErrorCode.GROUP_MAX_SIZE_REACHED
    stage.leave("a")
    stage.join("b", protocols=large)
    assert list(stage.machine.groups["readers"].members) == ["b"]


def test_a_member_who_says_as_much_again_is_not_counted_twice(stage_with):
    stage = stage_with(group_bytes_max=1024)
    for _ in range(3):
        stage.join("a", protocols=(Protocol("range", bytes(600)),))
    assert list(stage.machine.groups["readers"].members) == ["a"]


def test_of_the_ids_that_wait_for_their_owners_the_oldest_goes(stage):
    for number in range(PENDING_IDS_MAX + 1):
        stage.join(f"m{number}", needs_known_id=True)
    assert len(stage.machine.groups["readers"].pending_ids) == PENDING_IDS_MAX
    assert stage.outcome(stage.ask(stage.join_command("", member_id="m0"))) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    "said",
    [
        {"protocols": (Protocol("n" * 30_000, b""), RANGE)},
        {"client_id": "n" * 30_000},
        {"instance_id": "n" * 30_000},
    ],
    ids=["names of protocols", "a client id", "an instance id"],
)
def test_names_count_as_what_a_member_says(stage_with, said):
    stage = stage_with(group_bytes_max=40_000)
    stage.join("a", **said)
    if "instance_id" in said:
        said = {"instance_id": "m" * 30_000}
    assert stage.outcome(stage.join("b", **said)) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_static_member_that_was_restarted_is_not_counted_twice(stage_with):
    stage = stage_with(group_bytes_max=40_000)
    stage.join("a", instance_id="n" * 30_000)
    assert stage.outcome(stage.join("b", instance_id="n" * 30_000)).member_id == "b"


def test_a_group_that_is_full_is_not_counted_again_for_everybody_who_wants_to_join(stage_with, monkeypatch):
    stage = stage_with(group_bytes_max=40_000)
    for number in range(100):
        stage.join(f"m{number}")
    counted = []
    for module in (members, group, joining):
        monkeypatch.setattr(module, "said_by", lambda member, member_id: counted.append(member_id) or 30_000)
    assert stage.outcome(stage.join("one more")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert counted == ["one more"]


def test_joins_with_long_names_are_refused_when_memory_is_used_up(stage_with):
    stage = stage_with(groups_memory_bytes_max=MIB)
    outcomes = [stage.outcome(stage.join(f"{number}", group_id="g" * 30_000 + str(number))) for number in range(40)]
    assert outcomes[-1] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(stage.machine.groups) < MIB // 30_000
