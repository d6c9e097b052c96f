"""AlterPartitionReassignments (key 45), versions 0 and 1: move partitions to these brokers."""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, boolean, i16, i32, since, string


class ReassignablePartition(Struct):
    partition_index: i32
    #: Null: stop moving it.
    replicas: list[i32] | None = None


class ReassignableTopic(Struct):
    name: string
    partitions: list[ReassignablePartition]


class AlterPartitionReassignmentsRequest(Request["AlterPartitionReassignmentsResponse"], kw_only=True):
    api_key: ClassVar = 45
    flexible_since: ClassVar = 0

    timeout_ms: i32 = 60000
    allow_replication_factor_change: Annotated[boolean, since(1)] = True
    topics: list[ReassignableTopic]


class ReassignablePartitionResponse(Struct):
    partition_index: i32
    error_code: i16 = 0
    error_message: string | None = None


class ReassignableTopicResponse(Struct):
    name: string
    partitions: list[ReassignablePartitionResponse] = []


class AlterPartitionReassignmentsResponse(Message):
    api_key: ClassVar = 45
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    allow_replication_factor_change: Annotated[boolean, since(1)] = True
    error_code: i16 = 0
    error_message: string | None = None
    responses: list[ReassignableTopicResponse] = []
