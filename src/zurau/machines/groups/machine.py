"""All groups whose ids hash to one partition of `__consumer_offsets`.

The rules are in the other files of this room; here is only which rule answers which command and which timer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zurau.ids import Offset, TopicId
from zurau.machines.groups import joining, offsets, rebalance, removal, sessions
from zurau.machines.groups.commands import (
    CommitOffsets,
    DeleteGroup,
    DeleteOffsets,
    DescribedMember,
    DescribeGroup,
    FetchOffsets,
    ForgetTopics,
    GroupCommand,
    GroupDescription,
    GroupList,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListedGroup,
    ListGroups,
    SyncGroup,
)
from zurau.machines.groups.group import Group, GroupState
from zurau.machines.groups.memory import added_by, held_by
from zurau.machines.groups.memory_bound import MemoryBound
from zurau.machines.groups.records import apply_record
from zurau.machines.groups.settings import GroupSettings
from zurau.machines.groups.step import Deadlines, Step, Timer, TimerKind
from zurau.machines.machine import NOTHING, Decision, RequestId, StateRecord
from zurau.wire.kafka.error_codes import ErrorCode


class GroupMachine:
    """A `Machine` of consumer groups."""

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.groups: dict[str, Group] = {}
        self._deadlines = Deadlines()
        self._memory = MemoryBound()

    def decide(self, request_id: RequestId, command: GroupCommand, now_ms: int) -> Decision:
        step = Step(now_ms, self.settings, self._deadlines)
        if isinstance(command, _ABOUT_MEMBERS) and not command.group_id:
            step.refuse(request_id, ErrorCode.INVALID_GROUP_ID, "a group with members needs a name")
        elif not self._memory.take(added_by(command), self.settings.groups_memory_bytes_max, self._count_memory):
            # Clients come back later: what is not used expires.
            step.refuse(request_id, ErrorCode.COORDINATOR_NOT_AVAILABLE, "the groups' memory is used up")
        else:
            _RULES[type(command)](self.groups, command, request_id, step)
        if (step.records or self.groups) and _SWEEP not in self._deadlines:
            self._schedule_sweep(step, self.settings.offsets_check_interval_ms)
        return step.decision()

    def apply(self, record: StateRecord, offset: Offset) -> None:  # noqa: ARG002 - groups do not count by it
        apply_record(self.groups, record)

    def loaded(self, now_ms: int) -> Decision:
        """Whoever was a member is given a whole session to be heard of: no rebalance because of us."""
        step = Step(now_ms, self.settings, self._deadlines)
        for group in self.groups.values():
            for member in group.members.values():
                rebalance.renew_session(group, member, step)
        self._memory.held_bytes = self._count_memory()
        if self.groups:
            self._schedule_sweep(step, self.settings.offsets_check_interval_ms)
        return NOTHING

    def topics(self) -> set[tuple[str, TopicId]]:
        """Those for which offsets are committed, each with its id as far as that is known."""
        return {
            (name.topic, committed.topic_id)
            for group in self.groups.values()
            for name, committed in group.offsets.items()
        }

    def next_deadline_ms(self) -> int | None:
        return self._deadlines.next_ms()

    def time_passed(self, now_ms: int) -> Decision:
        step = Step(now_ms, self.settings, self._deadlines)
        # With something to write the step is over: what else is due is decided upon what that makes true.
        while not step.records and (timer := self._deadlines.pop_due(now_ms)) is not None:
            self._fire(timer, step)
        return step.decision()

    def _fire(self, timer: Timer, step: Step) -> None:
        if timer == _SWEEP:
            is_finished = removal.sweep(self.groups, step)
            if self.groups:
                self._schedule_sweep(step, self.settings.offsets_check_interval_ms if is_finished else 0)
            return
        group = self.groups.get(timer.group_id)
        if group is None:
            return
        match timer.kind:
            case TimerKind.SESSION:
                sessions.session_timed_out(group, timer.member_id, step)
            case TimerKind.PENDING_MEMBER:
                sessions.pending_member_timed_out(group, timer.member_id, step)
            case TimerKind.JOIN_BARRIER:
                rebalance.join_barrier_timed_out(group, step)
            case TimerKind.SYNC_BARRIER:
                rebalance.sync_barrier_timed_out(group, step)

    def _count_memory(self) -> int:
        return sum(map(held_by, self.groups.values()))

    def _schedule_sweep(self, step: Step, delay_ms: int) -> None:
        step.start_timer(delay_ms, TimerKind.SWEEP)


def _describe(groups: dict[str, Group], command: DescribeGroup, request_id: RequestId, step: Step) -> None:
    group = groups.get(command.group_id)
    if group is None:
        step.refuse(request_id, ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {command.group_id!r}")
        return
    is_stable = group.state is GroupState.STABLE
    members = tuple(
        DescribedMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.metadata_for(group.protocol) if is_stable else b"",
            member.assignment if is_stable else b"",
        )
        for member in group.members.values()
    )
    protocol = group.protocol if is_stable else ""
    step.answer(request_id, GroupDescription(group.group_id, group.state.value, group.protocol_type, protocol, members))


def _list(groups: dict[str, Group], _: ListGroups, request_id: RequestId, step: Step) -> None:
    listed = (ListedGroup(group.group_id, group.protocol_type, group.state.value) for group in groups.values())
    step.answer(request_id, GroupList(tuple(listed)))


_SWEEP = Timer(TimerKind.SWEEP)

#: Offsets may be kept under the empty name (old simple consumers do); members cannot meet there.
_ABOUT_MEMBERS = (JoinGroup, SyncGroup, Heartbeat, LeaveGroup)

_RULES: dict[type, Callable[[dict[str, Group], Any, RequestId, Step], None]] = {
    JoinGroup: joining.join,
    SyncGroup: rebalance.sync,
    Heartbeat: sessions.heartbeat,
    LeaveGroup: sessions.leave,
    CommitOffsets: offsets.commit,
    FetchOffsets: offsets.fetch,
    DeleteOffsets: removal.delete_offsets,
    ForgetTopics: removal.forget_topics,
    DescribeGroup: _describe,
    ListGroups: _list,
    DeleteGroup: removal.delete_group,
}
