"""OffsetCommit (key 8), versions 2 to 10: remember how far this group has read.

From version 10 on topics are named by their ids.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.ids import NO_TOPIC_ID
from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, i64, since, string, until, uuid


class OffsetCommitRequestPartition(Struct):
    partition_index: i32
    committed_offset: i64
    committed_leader_epoch: Annotated[i32, since(6)] = -1
    committed_metadata: string | None = None


class OffsetCommitRequestTopic(Struct, kw_only=True):
    name: Annotated[string, until(9)] = ""
    topic_id: Annotated[uuid, since(10)] = NO_TOPIC_ID
    partitions: list[OffsetCommitRequestPartition]


class OffsetCommitRequest(Request["OffsetCommitResponse"], kw_only=True):
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
    name: Annotated[string, until(9)] = ""
    topic_id: Annotated[uuid, since(10)] = NO_TOPIC_ID
    partitions: list[OffsetCommitResponsePartition] = []


class OffsetCommitResponse(Message):
    api_key: ClassVar = 8
    flexible_since: ClassVar = 8

    throttle_time_ms: Annotated[i32, since(3)] = 0
    topics: list[OffsetCommitResponseTopic] = []
