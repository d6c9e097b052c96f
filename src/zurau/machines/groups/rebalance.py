"""How a group comes to a new agreement: everybody joins, the leader shares out, everybody learns its share.

A rebalance has two barriers. At the first, members wait until all have joined; then each is told the new generation
and one of them, the leader, everybody's subscriptions. At the second, they wait for what the leader computed. Nobody
gets a share of a generation that is not the current one, which is all a broker can do to keep a partition from
having two owners.

Invariant: a member at a barrier has no session timer (it may not speak while it waits), and every barrier has a
timer. So every request_id is answered: when the barrier opens, when its time is over, or when its owner is removed.
"""

from __future__ import annotations

from collections.abc import Mapping

from zurau.machines.groups.commands import Synced, SyncGroup
from zurau.machines.groups.group import Group, GroupEvent, GroupState
from zurau.machines.groups.members import Member
from zurau.machines.groups.records import agreement_record, emptied_record
from zurau.machines.groups.step import Step, TimerKind
from zurau.machines.machine import RequestId
from zurau.settings import MINUTE_MS, SECOND_MS
from zurau.wire.kafka.error_codes import ErrorCode

#: A new member cannot send heartbeats while it waits, nor do we notice when it goes away: this bounds the wait.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * MINUTE_MS


def renew_session(group: Group, member: Member, step: Step) -> None:
    """It was heard of. While it waits at a barrier, the barrier's timer is its timer."""
    if not member.is_waiting:
        step.start_timer(member.session_timeout_ms, TimerKind.SESSION, group.group_id, member.member_id)


def wait_at_join_barrier(group: Group, member: Member, request_id: RequestId, step: Step) -> None:
    """Of two requests of one member the newer one counts: the older one's connection is gone, most likely."""
    dismiss(member, ErrorCode.REBALANCE_IN_PROGRESS, step)
    member.join_request_id = request_id
    if member.is_new:
        step.start_timer(NEW_MEMBER_JOIN_TIMEOUT_MS, TimerKind.SESSION, group.group_id, member.member_id)
    else:
        step.stop_timer(TimerKind.SESSION, group.group_id, member.member_id)


def dismiss(member: Member, code: ErrorCode, step: Step) -> None:
    """Send it away from whichever barrier it waits at."""
    for request_id in (member.join_request_id, member.sync_request_id):
        if request_id is not None:
            step.refuse(request_id, code)
    member.join_request_id = member.sync_request_id = None


def remove_member(group: Group, member: Member, step: Step) -> None:
    """It left or was given up. Call `settle` when all who leave together are out."""
    dismiss(member, ErrorCode.UNKNOWN_MEMBER_ID, step)
    step.stop_timer(TimerKind.SESSION, group.group_id, member.member_id)
    group.drop(member)


def settle(group: Group, step: Step) -> None:
    """The membership has changed: begin a rebalance, or see whether the one under way can go on."""
    if group.state is GroupState.PREPARING:
        open_join_barrier_if_met(group, step)
    else:
        begin(group, step)


def begin(group: Group, step: Step) -> None:
    """Put up the join barrier."""
    for member in group.members.values():
        if member.sync_request_id is not None:
            dismiss(member, ErrorCode.REBALANCE_IN_PROGRESS, step)
            renew_session(group, member, step)
    step.stop_timer(TimerKind.SYNC_BARRIER, group.group_id)
    timeout_ms = group.rebalance_timeout_ms
    delay_ms = step.settings.initial_rebalance_delay_ms
    if group.state is GroupState.EMPTY and delay_ms > 0:
        group.gathering_until_ms = step.now_ms + timeout_ms
        group.has_newcomers = False
        timeout_ms = min(delay_ms, timeout_ms)
    group.move(GroupEvent.REBALANCE_BEGAN)
    step.start_timer(timeout_ms, TimerKind.JOIN_BARRIER, group.group_id)
    open_join_barrier_if_met(group, step)


def open_join_barrier_if_met(group: Group, step: Step) -> None:
    if group.gathering_until_ms is None and group.all_joined:
        open_join_barrier(group, step)


def join_barrier_timed_out(group: Group, step: Step) -> None:
    assert group.state is GroupState.PREPARING
    until_ms = group.gathering_until_ms
    if until_ms is not None and group.has_newcomers and step.now_ms < until_ms:
        group.has_newcomers = False
        delay_ms = min(step.settings.initial_rebalance_delay_ms, until_ms - step.now_ms)
        step.start_timer(delay_ms, TimerKind.JOIN_BARRIER, group.group_id)
        return
    for member in list(group.members.values()):
        # Static members may be restarting: they keep their place until their session runs out.
        if member.join_request_id is None and member.instance_id is None:
            remove_member(group, member, step)
    open_join_barrier(group, step)


def open_join_barrier(group: Group, step: Step) -> None:
    """Everybody who is coming has come: a new generation."""
    group.gathering_until_ms = None
    if not group.members:
        empty(group, step)
        return
    if not group.elect_leader():
        # Only absent static members are left; somebody joins, or their sessions end.
        timeout_ms = max(group.rebalance_timeout_ms, SECOND_MS)
        step.start_timer(timeout_ms, TimerKind.JOIN_BARRIER, group.group_id)
        return
    step.stop_timer(TimerKind.JOIN_BARRIER, group.group_id)
    group.generation += 1
    group.protocol = group.choose_protocol()
    group.move(GroupEvent.ALL_JOINED)
    for member in group.members.values():
        member.has_synced = False
        if member.join_request_id is not None:
            step.answer(member.join_request_id, group.joined(member))
            member.join_request_id = None
            member.is_new = False
            renew_session(group, member, step)
    step.start_timer(group.rebalance_timeout_ms, TimerKind.SYNC_BARRIER, group.group_id)


def empty(group: Group, step: Step) -> None:
    """The last member is gone. The log has to know when, for offsets expire a while after."""
    step.stop_timer(TimerKind.JOIN_BARRIER, group.group_id)
    step.records.append(emptied_record(group, step.now_ms))


def sync(groups: Mapping[str, Group], command: SyncGroup, request_id: RequestId, step: Step) -> None:
    group = groups.get(command.group_id)
    code = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _check_sync(group, command)
    if group is None or code is not ErrorCode.NONE:
        step.refuse(request_id, code)
        return
    member = group.members[command.member_id]
    if group.state is GroupState.PREPARING:
        renew_session(group, member, step)
        step.refuse(request_id, ErrorCode.REBALANCE_IN_PROGRESS)
        return
    if member.member_id == group.leader_id and _is_too_large(group, command, step.settings.group_bytes_max):
        step.refuse(request_id, ErrorCode.UNKNOWN_SERVER_ERROR, "the agreement does not fit into one record")
        return
    member.has_synced = True
    if group.state is GroupState.STABLE:
        renew_session(group, member, step)
        step.answer(request_id, Synced(group.protocol_type, group.protocol, member.assignment))
    else:
        _wait_at_sync_barrier(group, member, request_id, step)
        if member.member_id == group.leader_id:
            _open_sync_barrier(group, command.assignments, step)
    if group.all_synced:
        step.stop_timer(TimerKind.SYNC_BARRIER, group.group_id)


def _check_sync(group: Group, command: SyncGroup) -> ErrorCode:
    code = group.check_member(command.member_id, command.instance_id)
    if code is not ErrorCode.NONE:
        return code
    if command.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if command.protocol_type not in (None, group.protocol_type) or command.protocol not in (None, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _is_too_large(group: Group, command: SyncGroup, bytes_max: int) -> bool:
    agreed = sum(len(member.metadata_for(group.protocol)) for member in group.members.values())
    return agreed + sum(map(len, command.assignments.values())) > bytes_max


def _wait_at_sync_barrier(group: Group, member: Member, request_id: RequestId, step: Step) -> None:
    dismiss(member, ErrorCode.REBALANCE_IN_PROGRESS, step)
    member.sync_request_id = request_id
    step.stop_timer(TimerKind.SESSION, group.group_id, member.member_id)


def _open_sync_barrier(group: Group, assignments: Mapping[str, bytes], step: Step) -> None:
    """The group is stable as soon as the log has the agreement, which is when the answers go out too."""
    step.records.append(agreement_record(group, assignments, step.now_ms))
    for member in group.members.values():
        if member.sync_request_id is not None:
            share = assignments.get(member.member_id, b"")
            step.answer(member.sync_request_id, Synced(group.protocol_type, group.protocol, share))
            member.sync_request_id = None
            renew_session(group, member, step)


def sync_barrier_timed_out(group: Group, step: Step) -> None:
    """Whoever did not come for its share is not there: share out again without it."""
    assert group.state in (GroupState.COMPLETING, GroupState.STABLE)
    for member in list(group.members.values()):
        if not member.has_synced:
            remove_member(group, member, step)
    settle(group, step)
