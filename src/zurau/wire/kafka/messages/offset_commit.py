"""OffsetCommit (key 8), versions 2 to 9: remember how far this group has read."""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Struct, i16, i32, i64, since, string, until


class OffsetCommitRequestPartition(Struct):
    partition_index: i32
    committed_offset: i64
    committed_leader_epoch: Annotated[i32, since(6)] = -1
    committed_metadata: string | None = None


class OffsetCommitRequestTopic(Struct):
    name: string
    partitions: list[OffsetCommitRequestPartition]


class OffsetCommitRequest(Message, kw_only=True):
    api_key: ClassVar = 8
    flexible_since: ClassVar = 8

    group_id: string
    #: -1: the group does not manage its members here.
    generation_id_or_member_epoch: i32 = -1
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(7)] = None
    #: Obsolete: how long offsets are kept is the broker's setting.
    retention_time_ms: Annotated[i64, until(4)] = -1
    topics: list[OffsetCommitRequestTopic]


class OffsetCommitResponsePartition(Struct):
    partition_index: i32
    error_code: i16 = 0


class OffsetCommitResponseTopic(Struct):
    name: string
    partitions: list[OffsetCommitResponsePartition] = []


class OffsetCommitResponse(Message):
    api_key: ClassVar = 8
    flexible_since: ClassVar = 8

    throttle_time_ms: Annotated[i32, since(3)] = 0
    topics: list[OffsetCommitResponseTopic] = []
