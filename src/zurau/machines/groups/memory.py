"""How much memory groups take, about, so that it can be bounded (`memory_bound.py`)."""

from __future__ import annotations

from zurau.machines.groups.commands import CommitOffsets, CommittedOffset, GroupCommand, JoinGroup, SyncGroup
from zurau.machines.groups.group import Group
from zurau.machines.groups.members import Member

#: What Python makes of each, without the bytes and texts of clients.
GROUP_BYTES = 2000
MEMBER_BYTES = 1500
PENDING_ID_BYTES = 500
OFFSET_BYTES = 460


def added_by(command: GroupCommand) -> int:
    """What a command adds if it is done."""
    match command:
        case JoinGroup():
            return GROUP_BYTES + MEMBER_BYTES + sum(len(offered.metadata) for offered in command.protocols)
        case CommitOffsets():
            return GROUP_BYTES + sum(OFFSET_BYTES + len(new.metadata) for new in command.offsets.values())
        case SyncGroup():
            return sum(map(len, command.assignments.values()))
        case _:
            return 0


def held_by(group: Group) -> int:
    members = sum(map(held_by_member, group.members.values()))
    return GROUP_BYTES + members + PENDING_ID_BYTES * len(group.pending_ids) + group.offset_bytes


def held_by_member(member: Member) -> int:
    return MEMBER_BYTES + subscription_bytes(member) + len(member.assignment)


def subscription_bytes(member: Member) -> int:
    return sum(len(offered.metadata) for offered in member.protocols)


def offset_bytes(committed: CommittedOffset) -> int:
    return OFFSET_BYTES + len(committed.metadata)
