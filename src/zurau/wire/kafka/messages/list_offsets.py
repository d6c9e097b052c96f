"""ListOffsets (key 2), versions 1 to 11: which offset is the first at or after this time?

Negative timestamps ask for special offsets: -1 the end, -2 the start, -3 the record with the greatest timestamp,
-4 and -5 the bounds of what is stored locally and remotely, -6 what is to be stored remotely next.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i8, i16, i32, i64, since, string


class ListOffsetsPartition(Struct, kw_only=True):
    partition_index: i32
    current_leader_epoch: Annotated[i32, since(4)] = -1
    #: Milliseconds, or a negative number with a meaning of its own.
    timestamp: i64


class ListOffsetsTopic(Struct):
    name: string
    partitions: list[ListOffsetsPartition]


class ListOffsetsRequest(Request["ListOffsetsResponse"], kw_only=True):
    api_key: ClassVar = 2
    flexible_since: ClassVar = 6

    #: -1 for a consumer.
    replica_id: i32 = -1
    isolation_level: Annotated[i8, since(2)] = 0
    topics: list[ListOffsetsTopic]
    #: For lookups in remote storage.
    timeout_ms: Annotated[i32, since(10)] = 0


class ListOffsetsPartitionResponse(Struct):
    partition_index: i32
    error_code: i16 = 0
    timestamp: i64 = -1
    #: -1: there is no such record.
    offset: i64 = -1
    leader_epoch: Annotated[i32, since(4)] = -1


class ListOffsetsTopicResponse(Struct):
    name: string
    partitions: list[ListOffsetsPartitionResponse] = []


class ListOffsetsResponse(Message):
    api_key: ClassVar = 2
    flexible_since: ClassVar = 6

    throttle_time_ms: Annotated[i32, since(2)] = 0
    topics: list[ListOffsetsTopicResponse] = []
