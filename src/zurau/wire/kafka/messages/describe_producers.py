"""DescribeProducers (key 61), version 0: what a partition remembers of its idempotent and transactional producers."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, i64, string


class TopicRequest(Struct):
    name: string
    partition_indexes: list[i32]


class DescribeProducersRequest(Request["DescribeProducersResponse"]):
    api_key: ClassVar = 61
    flexible_since: ClassVar = 0

    topics: list[TopicRequest]


class ProducerState(Struct, kw_only=True):
    producer_id: i64
    producer_epoch: i32
    last_sequence: i32 = -1
    last_timestamp: i64 = -1
    coordinator_epoch: i32
    current_txn_start_offset: i64 = -1


class PartitionResponse(Struct):
    partition_index: i32
    error_code: i16 = 0
    error_message: string | None = None
    active_producers: list[ProducerState] = []


class TopicResponse(Struct):
    name: string
    partitions: list[PartitionResponse] = []


class DescribeProducersResponse(Message):
    api_key: ClassVar = 61
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    topics: list[TopicResponse] = []
