"""How far a group has read: committing and fetching offsets.

A member commits under its generation, so that one who was left behind cannot move the offsets of partitions that
another owns by now. Who manages partitions without the group ("simple" consumers, operators) commits without member
and generation, which is allowed while the group has no members.
"""

from __future__ import annotations

from collections.abc import Mapping

from zurau.machines.groups.commands import (
    NO_GENERATION,
    NO_MEMBER,
    CommitOffsets,
    CommittedOffset,
    FetchOffsets,
    NewOffset,
    OffsetsCommitted,
    OffsetsFetched,
)
from zurau.machines.groups.group import Group, GroupState
from zurau.machines.groups.rebalance import renew_session
from zurau.machines.groups.records import offset_record
from zurau.machines.groups.step import Step
from zurau.machines.machine import RequestId
from zurau.settings import INT64_MAX
from zurau.wire.kafka.error_codes import ErrorCode


def commit(groups: Mapping[str, Group], command: CommitOffsets, request_id: RequestId, step: Step) -> None:
    group = groups.get(command.group_id)
    code = _check_commit(group, command)
    if group is not None and command.member_id in group.members and code is not ErrorCode.FENCED_INSTANCE_ID:
        renew_session(group, group.members[command.member_id], step)
    if code is not ErrorCode.NONE:
        step.refuse(request_id, code)
        return
    expires_ms = None if command.retention_ms is None else min(step.now_ms + command.retention_ms, INT64_MAX)
    codes = {}
    for partition, new in command.offsets.items():
        codes[partition] = _check_offset(new, step.settings.offset_metadata_bytes_max)
        if codes[partition] is ErrorCode.NONE:
            committed = CommittedOffset(
                new.offset, new.leader_epoch, new.metadata, step.now_ms, expires_ms, new.topic_id
            )
            step.records.append(offset_record(command.group_id, partition, committed))
    step.answer(request_id, OffsetsCommitted(codes))


def _check_commit(group: Group | None, command: CommitOffsets) -> ErrorCode:
    is_simple = command.generation <= NO_GENERATION
    if group is None:
        return ErrorCode.NONE if is_simple else ErrorCode.ILLEGAL_GENERATION
    if is_simple and not group.members:
        return ErrorCode.NONE
    if is_simple and command.member_id == NO_MEMBER and command.instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    code = group.check_member(command.member_id, command.instance_id)
    if code is not ErrorCode.NONE:
        return code
    if command.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    # Between the barriers nobody owns anything yet. Before them members may still commit what they give up.
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is GroupState.COMPLETING else ErrorCode.NONE


def _check_offset(new: NewOffset, metadata_bytes_max: int) -> ErrorCode:
    if len(new.metadata.encode()) > metadata_bytes_max:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def fetch(groups: Mapping[str, Group], command: FetchOffsets, request_id: RequestId, step: Step) -> None:
    group = groups.get(command.group_id)
    known = {} if group is None else group.offsets
    if command.partitions is None:
        step.answer(request_id, OffsetsFetched(dict(known)))
    else:
        step.answer(request_id, OffsetsFetched({partition: known.get(partition) for partition in command.partitions}))
