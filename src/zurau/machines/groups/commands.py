"""What a group machine can be asked, and what it answers.

A refusal is a `Refused` in place of the answer; where one question names several members or partitions, each has a
code of its own in the answer. The answers to `JoinGroup` and `SyncGroup` may come in a later decision: members wait
for each other there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from zurau.ids import NO_TOPIC_ID, TopicId, TopicPartition
from zurau.machines.groups.members import Protocol
from zurau.machines.machine import Command, Value
from zurau.settings import INT64_MAX
from zurau.wire.kafka.error_codes import ErrorCode

NO_GENERATION = -1
NO_MEMBER = ""


class JoinGroup(Command["Joined | MemberIdRequired"]):
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


class Joined(Value):
    generation: int
    protocol_type: str
    protocol: str
    leader_id: str
    member_id: str
    #: Everybody's metadata for the leader, who computes the assignment; nothing for the others.
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


class MemberIdRequired(Value):
    """Join again with this id."""

    member_id: str


class SyncGroup(Command["Synced"]):
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol: str | None
    #: From the leader only: what each member shall own, opaque to us.
    assignments: Mapping[str, bytes]


class Synced(Value):
    protocol_type: str
    protocol: str
    assignment: bytes


class Heartbeat(Command["Acknowledged"]):
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None = None


class Acknowledged(Value):
    """Done; there is nothing more to say."""


class Unfinished(Value):
    """A part of it is done: there is more than one decision may write. Ask again."""

    now_ms: int


class Leaver(NamedTuple):
    member_id: str
    instance_id: str | None = None


class LeaveGroup(Command["Left"]):
    group_id: str
    leavers: tuple[Leaver, ...]


class Left(Value):
    """One code for each leaver, in their order."""

    codes: tuple[ErrorCode, ...]


class NewOffset(NamedTuple):
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    #: Which topic of that name it is about.
    topic_id: TopicId = NO_TOPIC_ID


class CommitOffsets(Command["OffsetsCommitted"]):
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    offsets: Mapping[TopicPartition, NewOffset]
    #: Old clients may say how long these offsets shall live; None leaves it to the broker.
    retention_ms: int | None = None


class OffsetsCommitted(Value):
    codes: Mapping[TopicPartition, ErrorCode]


class FetchOffsets(Command["OffsetsFetched"]):
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
    #: Not known of what older releases, or clients that gave it a lifetime, have committed.
    topic_id: TopicId = NO_TOPIC_ID


class OffsetsFetched(Value):
    """None for a partition without a committed offset."""

    offsets: Mapping[TopicPartition, CommittedOffset | None]


class DeleteOffsets(Command["OffsetsDeleted"]):
    group_id: str
    partitions: tuple[TopicPartition, ...]


class OffsetsDeleted(Value):
    codes: Mapping[TopicPartition, ErrorCode]


class ForgetTopics(Command["Acknowledged | Unfinished"]):
    """These topics are gone, by name and id: so are all groups' offsets in them, and those of which nobody knows to
    which topic of that name they belong."""

    topics: frozenset[tuple[str, TopicId]]
    #: Asked again: what was committed without an id since then is of another topic of the same name.
    committed_upto_ms: int = INT64_MAX


class DescribeGroup(Command["GroupDescription"]):
    group_id: str


class DescribedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    #: Known while the group is stable.
    metadata: bytes
    assignment: bytes


class GroupDescription(Value):
    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[DescribedMember, ...]


class ListGroups(Command["GroupList"]):
    pass


class ListedGroup(NamedTuple):
    group_id: str
    protocol_type: str
    state: str


class GroupList(Value):
    groups: tuple[ListedGroup, ...]


class DeleteGroup(Command["Acknowledged | Unfinished"]):
    group_id: str


GroupCommand = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | CommitOffsets
    | FetchOffsets
    | DeleteOffsets
    | ForgetTopics
    | DescribeGroup
    | ListGroups
    | DeleteGroup
)
