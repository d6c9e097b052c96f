"""How members stay, and how they go: heartbeats, leaving, and being given up."""

from __future__ import annotations

from collections.abc import Mapping

from zurau.machines.groups.commands import NO_MEMBER, Acknowledged, Heartbeat, LeaveGroup, Leaver, Left
from zurau.machines.groups.group import Group, GroupState
from zurau.machines.groups.rebalance import remove_member, renew_session, settle
from zurau.machines.groups.step import Step, TimerKind
from zurau.machines.machine import RequestId
from zurau.wire.kafka.error_codes import ErrorCode


def heartbeat(groups: Mapping[str, Group], command: Heartbeat, request_id: RequestId, step: Step) -> None:
    group = groups.get(command.group_id)
    if group is None:
        step.refuse(request_id, ErrorCode.UNKNOWN_MEMBER_ID)
        return
    code = group.check_member(command.member_id, command.instance_id)
    if code is ErrorCode.NONE and command.generation != group.generation:
        code = ErrorCode.ILLEGAL_GENERATION
    if code is ErrorCode.NONE:
        renew_session(group, group.members[command.member_id], step)
        if group.state is GroupState.PREPARING:
            code = ErrorCode.REBALANCE_IN_PROGRESS
    if code is ErrorCode.NONE:
        step.answer(request_id, Acknowledged())
    else:
        step.refuse(request_id, code)


def leave(groups: Mapping[str, Group], command: LeaveGroup, request_id: RequestId, step: Step) -> None:
    group = groups.get(command.group_id)
    if group is None:
        step.answer(request_id, Left((ErrorCode.UNKNOWN_MEMBER_ID,) * len(command.leavers)))
        return
    count_before = len(group.members)
    codes = tuple(_leave_one(group, leaver, step) for leaver in command.leavers)
    if len(group.members) < count_before or group.state is GroupState.PREPARING:
        settle(group, step)
    step.answer(request_id, Left(codes))


def _leave_one(group: Group, leaver: Leaver, step: Step) -> ErrorCode:
    member_id = leaver.member_id
    if leaver.instance_id is not None and member_id == NO_MEMBER:
        # An operator removes a static member without knowing its present id.
        member_id = group.instances.get(leaver.instance_id, NO_MEMBER)
    if leaver.instance_id is None and member_id in group.pending_ids:
        del group.pending_ids[member_id]
        step.stop_timer(TimerKind.PENDING_MEMBER, group.group_id, member_id)
        return ErrorCode.NONE
    code = group.check_member(member_id, leaver.instance_id)
    if code is ErrorCode.NONE:
        remove_member(group, group.members[member_id], step)
    return code


def session_timed_out(group: Group, member_id: str, step: Step) -> None:
    remove_member(group, group.members[member_id], step)
    settle(group, step)


def pending_member_timed_out(group: Group, member_id: str, step: Step) -> None:
    group.pending_ids.pop(member_id, None)
    if group.state is GroupState.PREPARING:
        settle(group, step)
