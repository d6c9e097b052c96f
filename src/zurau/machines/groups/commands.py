"""What a group machine can be asked, and what it answers.

A refusal is a `Refused` in place of the answer; where one question names several members or partitions, each has a
code of its own in the answer. The answers to `JoinGroup` and `SyncGroup` may come in a later decision: members wait
for each other there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from zurau.ids import TopicPartition
from zurau.machines.groups.members import Protocol
from zurau.wire.kafka.error_codes import ErrorCode

NO_GENERATION = -1
NO_MEMBER = ""


@dataclass(frozen=True, slots=True)
class JoinGroup:
    group_id: str
    #: Empty when the member has no id yet; then `candidate_id`, which nobody had before, becomes its id.
    member_id: str
    candidate_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    #: A first join is answered with an id only, so that a retry is not taken for another member (KIP-394).
    needs_known_id: bool = True
    #: The member understands a leader's answer that tells it not to compute an assignment (KIP-814).
    can_skip_assignment: bool = True


class JoinedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Joined:
    generation: int
    protocol_type: str
    protocol: str
    leader_id: str
    member_id: str
    #: Everybody's metadata for the leader, who computes the assignment; nothing for the others.
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class MemberIdRequired:
    """Join again with this id."""

    member_id: str


@dataclass(frozen=True, slots=True)
class SyncGroup:
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol: str | None
    #: From the leader only: what each member shall own, opaque to us.
    assignments: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Synced:
    protocol_type: str
    protocol: str
    assignment: bytes


@dataclass(frozen=True, slots=True)
class Heartbeat:
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Done; there is nothing more to say."""


class Leaver(NamedTuple):
    member_id: str
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    group_id: str
    leavers: tuple[Leaver, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """One code for each leaver, in their order."""

    codes: tuple[ErrorCode, ...]


class NewOffset(NamedTuple):
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    offsets: Mapping[TopicPartition, NewOffset]
    #: Old clients may say how long these offsets shall live; None leaves it to the broker.
    retention_ms: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetsCommitted:
    codes: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class FetchOffsets:
    group_id: str
    #: None asks for everything that the group has committed.
    partitions: tuple[TopicPartition, ...] | None = None


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    #: Set only if the client that committed asked for a lifetime of its own.
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetsFetched:
    """None for a partition without a committed offset."""

    offsets: Mapping[TopicPartition, CommittedOffset | None]


@dataclass(frozen=True, slots=True)
class DeleteOffsets:
    group_id: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OffsetsDeleted:
    codes: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class ForgetTopic:
    """The topic is gone: so are all groups' offsets in it."""

    topic: str


@dataclass(frozen=True, slots=True)
class DescribeGroup:
    group_id: str


class DescribedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    #: Known while the group is stable.
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[DescribedMember, ...]


@dataclass(frozen=True, slots=True)
class ListGroups:
    pass


class ListedGroup(NamedTuple):
    group_id: str
    protocol_type: str
    state: str


@dataclass(frozen=True, slots=True)
class GroupList:
    groups: tuple[ListedGroup, ...]


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    group_id: str


GroupCommand = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | CommitOffsets
    | FetchOffsets
    | DeleteOffsets
    | ForgetTopic
    | DescribeGroup
    | ListGroups
    | DeleteGroup
)
