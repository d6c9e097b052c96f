"""What the log of consumer groups holds, as Kafka has it in `__consumer_offsets`, so that its tools can read it.

The version in front of a key tells which kind of record it is:

| key version | key                | value                | means                                    |
|-------------|--------------------|----------------------|------------------------------------------|
| 0, 1        | `OffsetCommitKey`  | `OffsetCommitValue`  | how far a group has read a partition     |
| 2           | `GroupMetadataKey` | `GroupMetadataValue` | who is in a group, and with which duties |

The topic is compacted; no value means that the key is gone.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.ids import NO_TOPIC_ID
from zurau.wire.kafka.schema import Message, Struct, between, blob, i32, i64, since, string, tagged, uuid


class OffsetCommitKey(Message):
    versions: ClassVar = range(2)

    group: string
    topic: string
    partition: i32


class OffsetCommitValue(Message, kw_only=True):
    versions: ClassVar = range(5)
    flexible_since: ClassVar = 4

    offset: i64
    leader_epoch: Annotated[i32, since(3)] = -1
    metadata: string
    commit_timestamp: i64
    #: Obsolete: when an offset expires is the broker's setting.
    expire_timestamp: Annotated[i64, between(1, 1)] = -1
    topic_id: Annotated[uuid, tagged(0, since=4)] = NO_TOPIC_ID


class GroupMetadataKey(Message):
    versions: ClassVar = range(2, 3)

    group: string


class MemberMetadata(Struct, kw_only=True):
    member_id: string
    group_instance_id: Annotated[string | None, since(3)] = None
    client_id: string
    client_host: string
    #: -1: version 0 had only the session timeout.
    rebalance_timeout: Annotated[i32, since(1)] = -1
    session_timeout: i32
    subscription: blob
    assignment: blob


class GroupMetadataValue(Message, kw_only=True):
    versions: ClassVar = range(5)
    flexible_since: ClassVar = 4

    protocol_type: string
    generation: i32
    #: The assignor that was agreed on; null while the group is empty.
    protocol: string | None
    leader: string | None
    current_state_timestamp: Annotated[i64, since(2)] = -1
    members: list[MemberMetadata]
