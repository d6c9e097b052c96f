"""How much memory groups take, about, so that it can be bounded (`memory_bound.py`)."""

from __future__ import annotations

from collections.abc import Iterable
from sys import getsizeof

from zurau.machines.groups.commands import CommitOffsets, CommittedOffset, GroupCommand, JoinGroup, SyncGroup
from zurau.machines.groups.group import Group
from zurau.machines.groups.members import Member, Protocol

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
    members = sum(map(held_by_member, group.members.values()))
    pending = PENDING_ID_BYTES * len(group.pending_ids) + sum(map(getsizeof, group.pending_ids))
    return GROUP_BYTES + getsizeof(group.group_id) + members + pending + group.offset_bytes


def held_by_member(member: Member) -> int:
    return MEMBER_BYTES + said_by(member, member.member_id) + len(member.assignment)


def said_by(member: Member | JoinGroup, member_id: str) -> int:
    """What a member has said of itself: names as well, each of which may have 32 KB."""
    names = (member_id, member.instance_id, member.client_id, member.client_host)
    return sum(map(getsizeof, names)) + _offered_bytes(member.protocols)


def _offered_bytes(protocols: Iterable[Protocol]) -> int:
    return sum(getsizeof(offered.name) + len(offered.metadata) for offered in protocols)


def offset_bytes(committed: CommittedOffset) -> int:
    return OFFSET_BYTES + getsizeof(committed.metadata)
