"""OffsetFetch (key 9), versions 1 to 10: how far had this group read?

Up to version 7 about one group, at the top level; from version 8 on about many. From version 10 on topics are
named by their ids.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.ids import NO_TOPIC_ID
from zurau.wire.kafka.schema import (
    Message,
    Request,
    Struct,
    between,
    boolean,
    i16,
    i32,
    i64,
    nullable_since,
    since,
    string,
    until,
    uuid,
)


class OffsetFetchRequestTopic(Struct):
    name: string
    partition_indexes: list[i32]


class OffsetFetchRequestTopics(Struct, kw_only=True):
    name: Annotated[string, until(9)] = ""
    topic_id: Annotated[uuid, since(10)] = NO_TOPIC_ID
    partition_indexes: list[i32]


class OffsetFetchRequestGroup(Struct):
    group_id: string
    member_id: Annotated[string | None, since(9)] = None
    member_epoch: Annotated[i32, since(9)] = -1
    #: Null: all partitions that the group has committed.
    topics: list[OffsetFetchRequestTopics] | None = None


class OffsetFetchRequest(Request["OffsetFetchResponse"]):
    api_key: ClassVar = 9
    flexible_since: ClassVar = 6

    group_id: Annotated[string, until(7)] = ""
    #: Null: all partitions that the group has committed.
    topics: Annotated[list[OffsetFetchRequestTopic] | None, until(7), nullable_since(2)] = []
    groups: Annotated[list[OffsetFetchRequestGroup], since(8)] = []
    #: Refuse while a transaction has commits pending.
    require_stable: Annotated[boolean, since(7)] = False


class OffsetFetchResponsePartition(Struct):
    partition_index: i32
    committed_offset: i64
    committed_leader_epoch: Annotated[i32, since(5)] = -1
    metadata: string | None = None
    error_code: i16 = 0


class OffsetFetchResponseTopic(Struct):
    name: string
    partitions: list[OffsetFetchResponsePartition] = []


class OffsetFetchResponsePartitions(Struct):
    partition_index: i32
    committed_offset: i64
    committed_leader_epoch: i32 = -1
    metadata: string | None = None
    error_code: i16 = 0


class OffsetFetchResponseTopics(Struct):
    name: Annotated[string, until(9)] = ""
    topic_id: Annotated[uuid, since(10)] = NO_TOPIC_ID
    partitions: list[OffsetFetchResponsePartitions] = []


class OffsetFetchResponseGroup(Struct):
    group_id: string
    topics: list[OffsetFetchResponseTopics] = []
    error_code: i16 = 0


class OffsetFetchResponse(Message):
    api_key: ClassVar = 9
    flexible_since: ClassVar = 6

    throttle_time_ms: Annotated[i32, since(3)] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], until(7)] = []
    error_code: Annotated[i16, between(2, 7)] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], since(8)] = []
