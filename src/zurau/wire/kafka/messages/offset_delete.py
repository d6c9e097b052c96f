"""OffsetDelete (key 47), version 0: forget how far a group has read some partitions."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, string


class OffsetDeleteRequestPartition(Struct):
    partition_index: i32


class OffsetDeleteRequestTopic(Struct):
    name: string
    partitions: list[OffsetDeleteRequestPartition]


class OffsetDeleteRequest(Request["OffsetDeleteResponse"]):
    api_key: ClassVar = 47

    group_id: string
    topics: list[OffsetDeleteRequestTopic]


class OffsetDeleteResponsePartition(Struct):
    partition_index: i32
    error_code: i16 = 0


class OffsetDeleteResponseTopic(Struct):
    name: string
    partitions: list[OffsetDeleteResponsePartition] = []


class OffsetDeleteResponse(Message):
    api_key: ClassVar = 47

    error_code: i16 = 0
    throttle_time_ms: i32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
