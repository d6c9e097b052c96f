"""How much memory groups take, about, so that it can be bounded (`memory_bound.py`)."""

from __future__ import annotations

from sys import getsizeof

from zurau.machines.groups.commands import CommitOffsets, CommittedOffset, GroupCommand, JoinGroup, SyncGroup
from zurau.machines.groups.group import Group
from zurau.machines.groups.members import said_by

#: What Python makes of each, without the bytes and texts of clients.
GROUP_BYTES = 2000
MEMBER_BYTES = 1500
PENDING_ID_BYTES = 500
OFFSET_BYTES = 460


def added_by(command: GroupCommand) -> int:
    """What a command adds if it is done."""
    match command:
        case JoinGroup():
            member_id = command.member_id or command.candidate_id
            return GROUP_BYTES + getsizeof(command.group_id) + MEMBER_BYTES + said_by(command, member_id)
        case CommitOffsets():
            offsets = sum(OFFSET_BYTES + getsizeof(new.metadata) for new in command.offsets.values())
            return GROUP_BYTES + getsizeof(command.group_id) + offsets
        case SyncGroup():
            return sum(map(len, command.assignments.values()))
        case _:
            return 0


def held_by(group: Group) -> int:
    members = MEMBER_BYTES * len(group.members) + group.said_bytes
    members += sum(len(member.assignment) for member in group.members.values())
    pending = PENDING_ID_BYTES * len(group.pending_ids) + sum(map(getsizeof, group.pending_ids))
    return GROUP_BYTES + getsizeof(group.group_id) + members + pending + group.offset_bytes


def offset_bytes(committed: CommittedOffset) -> int:
    return OFFSET_BYTES + getsizeof(committed.metadata)
