"""Asking the machine that a group lives on, with errors that clients of a coordinator understand.

When the log under a group refuses, it names what is wrong with a partition. The client knows no partition here: to
it, its coordinator is gone or busy, and it shall look for it again or wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

from zurau.api.kafka.call import Call
from zurau.broker.last_seen import Kind
from zurau.errors import Refused
from zurau.machines.groups.commands import CommitOffsets, Heartbeat, JoinGroup
from zurau.machines.machine import Command, Reply
from zurau.wire.kafka.error_codes import ErrorCode

_AS_COORDINATOR: dict[IntEnum, ErrorCode] = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


#: What only members ask.
_OF_MEMBERS = (JoinGroup, Heartbeat, CommitOffsets)
#: Of members or partitions in one command: a machine decides in one go, while all others wait.
PIECE = 100

T = TypeVar("T")


def pieces(items: Sequence[T]) -> list[tuple[T, ...]]:
    """For several commands instead of a long one. At least one, because a machine has something to say to none."""
    return [tuple(items[first : first + PIECE]) for first in range(0, len(items), PIECE)] or [()]


async def ask_group(group_id: str, command: Command[Reply], call: Call) -> Reply:
    """The reply of the group's machine; raises `Refused`."""
    if isinstance(command, _OF_MEMBERS):
        call.broker.last_seen.heard(Kind.MEMBER, call.client_id, group_id)
    try:
        return await call.broker.groups_of(group_id).submit(command)
    except Refused as refused:
        raise Refused(_AS_COORDINATOR.get(refused.code, refused.code), refused.message) from refused
