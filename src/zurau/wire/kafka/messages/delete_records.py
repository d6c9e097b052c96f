"""DeleteRecords (key 21), versions 0 to 2: move the start of a log forward."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, i64, string


class DeleteRecordsPartition(Struct):
    partition_index: i32
    #: The new first offset; -1: the high watermark.
    offset: i64


class DeleteRecordsTopic(Struct):
    name: string
    partitions: list[DeleteRecordsPartition]


class DeleteRecordsRequest(Request["DeleteRecordsResponse"]):
    api_key: ClassVar = 21
    flexible_since: ClassVar = 2

    topics: list[DeleteRecordsTopic]
    timeout_ms: i32


class DeleteRecordsPartitionResult(Struct):
    partition_index: i32
    #: The first offset now.
    low_watermark: i64
    error_code: i16 = 0


class DeleteRecordsTopicResult(Struct):
    name: string
    partitions: list[DeleteRecordsPartitionResult] = []


class DeleteRecordsResponse(Message):
    api_key: ClassVar = 21
    flexible_since: ClassVar = 2

    throttle_time_ms: i32 = 0
    topics: list[DeleteRecordsTopicResult] = []
