"""Who may join, and whether the group has to come to a new agreement because of it.

| who joins                        | while stable                                 | otherwise                 |
|----------------------------------|----------------------------------------------|---------------------------|
| somebody without an id           | is given one; joins with it                  | the same                  |
| a new member                     | rebalance                                    | waits at the join barrier |
| the leader                       | rebalance: it wants to share out anew        | waits at the join barrier |
| a follower, subscription changed | rebalance                                    | waits at the join barrier |
| a follower, nothing changed      | is told the current generation               | waits at the join barrier |
| a static member, restarted       | takes its place; rebalance if it changed     | takes it and waits        |

A member that joins between the barriers missed the answer to its last join: if nothing changed it is told again.
"""

from __future__ import annotations

from msgspec.structs import replace

from zurau.machines.groups.commands import NO_MEMBER, JoinGroup, MemberIdRequired
from zurau.machines.groups.group import Group, GroupState
from zurau.machines.groups.members import (
    CONSUMER_PROTOCOL_TYPE,
    Member,
    has_more_to_give_up,
    means_the_same,
    said_by,
)
from zurau.machines.groups.rebalance import dismiss, renew_session, settle, wait_at_join_barrier
from zurau.machines.groups.records import agreement_record
from zurau.machines.groups.settings import GroupSettings
from zurau.machines.groups.step import Step, TimerKind
from zurau.machines.machine import RequestId
from zurau.wire.kafka.error_codes import ErrorCode

#: Ways of assigning partitions that one member may offer: clients offer up to three.
PROTOCOLS_MAX = 32
#: Ids of one group that wait for their owners to join.
PENDING_IDS_MAX = 1000


def join(groups: dict[str, Group], command: JoinGroup, request_id: RequestId, step: Step) -> None:
    code = _check_command(command, step.settings)
    group = groups.get(command.group_id)
    if code is ErrorCode.NONE:
        if group is None and command.member_id == NO_MEMBER:
            group = groups[command.group_id] = Group(command.group_id)
        code = _check_group(group, command, step.settings)
    if group is None or code is not ErrorCode.NONE:
        step.refuse(request_id, code)
    elif command.member_id != NO_MEMBER and command.member_id not in group.pending_ids:
        _rejoin(group, group.members[command.member_id], command, request_id, step)
    elif command.instance_id in group.instances:
        _take_place(group, command, request_id, step)
    elif command.member_id == NO_MEMBER and command.instance_id is None and command.needs_known_id:
        _hand_out_id(group, command, request_id, step)
    else:
        _welcome(group, command, request_id, step)


def _check_command(command: JoinGroup, settings: GroupSettings) -> ErrorCode:
    if not settings.session_timeout_min_ms <= command.session_timeout_ms <= settings.session_timeout_max_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    if not command.protocol_type or not 0 < len(command.protocols) <= PROTOCOLS_MAX:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _check_group(group: Group | None, command: JoinGroup, settings: GroupSettings) -> ErrorCode:
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    known = command.member_id
    if known == NO_MEMBER and command.instance_id is not None:
        known = group.instances.get(command.instance_id, NO_MEMBER)
    elif known != NO_MEMBER and known not in group.pending_ids:
        code = group.check_member(known, command.instance_id)
        if code is not ErrorCode.NONE:
            return code
    if _is_full(group, known, settings.group_size_max) or _says_too_much(
        group, command, known, settings.group_bytes_max
    ):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if not group.can_agree(command.protocol_type, command.protocols, besides=known):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _is_full(group: Group, member_id: str, size_max: int) -> bool:
    """At the join barrier the first ones to come have the places; otherwise those who have a place keep it."""
    if len(group.members) < size_max:
        return False
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING:
        return (member is None or member.join_request_id is None) and group.joining_count() >= size_max
    return member is None


def _says_too_much(group: Group, command: JoinGroup, known: str, bytes_max: int) -> bool:
    """Whether what all say of themselves, with which the leader is answered, would get too large."""
    member = group.members.get(known)
    others_bytes = group.said_bytes - (said_by(member, member.member_id) if member is not None else 0)
    return others_bytes + said_by(command, command.member_id or command.candidate_id) > bytes_max


def _hand_out_id(group: Group, command: JoinGroup, request_id: RequestId, step: Step) -> None:
    """Only who comes back with the id is a member: so a request that was sent twice makes no ghost."""
    if len(group.pending_ids) >= PENDING_IDS_MAX:
        # Its owner, if it ever comes, is told that nobody knows the id, and asks for another.
        oldest = next(iter(group.pending_ids))
        del group.pending_ids[oldest]
        step.stop_timer(TimerKind.PENDING_MEMBER, group.group_id, oldest)
    group.pending_ids[command.candidate_id] = None
    step.start_timer(command.session_timeout_ms, TimerKind.PENDING_MEMBER, command.group_id, command.candidate_id)
    step.answer(request_id, MemberIdRequired(command.candidate_id))


def _welcome(group: Group, command: JoinGroup, request_id: RequestId, step: Step) -> None:
    member = Member(
        member_id=command.member_id or command.candidate_id,
        instance_id=command.instance_id,
        client_id=command.client_id,
        client_host=command.client_host,
        session_timeout_ms=command.session_timeout_ms,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        protocols=command.protocols,
        is_new=True,
    )
    step.stop_timer(TimerKind.PENDING_MEMBER, group.group_id, member.member_id)
    group.protocol_type = command.protocol_type
    group.has_newcomers = True
    group.add(member)
    wait_at_join_barrier(group, member, request_id, step)
    settle(group, step)


def _rejoin(group: Group, member: Member, command: JoinGroup, request_id: RequestId, step: Step) -> None:
    is_unchanged = member.protocols == command.protocols
    is_told_again = is_unchanged and (
        group.state is GroupState.COMPLETING
        or (group.state is GroupState.STABLE and member.member_id != group.leader_id)
    )
    group.update(member, command)
    if is_told_again:
        dismiss(member, ErrorCode.REBALANCE_IN_PROGRESS, step)
        renew_session(group, member, step)
        step.answer(request_id, group.joined(member))
    else:
        wait_at_join_barrier(group, member, request_id, step)
        settle(group, step)


def _take_place(group: Group, command: JoinGroup, request_id: RequestId, step: Step) -> None:
    """A static member is back under a new id; whoever still uses the old one is fenced (KIP-345)."""
    assert command.instance_id is not None
    old_leader_id = group.leader_id
    old = group.members[group.instances[command.instance_id]]
    dismiss(old, ErrorCode.FENCED_INSTANCE_ID, step)
    step.stop_timer(TimerKind.SESSION, group.group_id, old.member_id)
    member = group.replace_static(old, command.candidate_id)
    group.update(member, command)
    if group.state is not GroupState.STABLE or not _still_agrees(group, old, member):
        wait_at_join_barrier(group, member, request_id, step)
        settle(group, step)
        return
    renew_session(group, member, step)
    assignments = {each.member_id: each.assignment for each in group.members.values()}
    step.records.append(agreement_record(group, assignments, step.now_ms))
    joined = group.joined(member)
    if member.member_id != group.leader_id:
        step.answer(request_id, joined)
    elif command.can_skip_assignment:
        step.answer(request_id, replace(joined, skip_assignment=True))
    else:
        # It would share out again if it knew that it leads: name the leader that it was.
        step.answer(request_id, replace(joined, leader_id=old_leader_id, members=()))


def _still_agrees(group: Group, old: Member, member: Member) -> bool:
    """Whether the agreement that stands is the one the group would come to again."""
    metadata = old.metadata_for(group.protocol)
    return (
        group.choose_protocol() == group.protocol
        and means_the_same(group.protocol_type, metadata, member.metadata_for(group.protocol))
        # It went away between the two rebalances of a handover: without a second one the rest would be nobody's.
        and not (group.protocol_type == CONSUMER_PROTOCOL_TYPE and has_more_to_give_up(metadata, old.assignment))
    )
