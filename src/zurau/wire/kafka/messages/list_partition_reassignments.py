"""ListPartitionReassignments (key 46), version 0: which partitions are being moved?"""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, string


class ListPartitionReassignmentsTopics(Struct):
    name: string
    partition_indexes: list[i32]


class ListPartitionReassignmentsRequest(Request["ListPartitionReassignmentsResponse"]):
    api_key: ClassVar = 46
    flexible_since: ClassVar = 0

    timeout_ms: i32 = 60000
    #: Null: all of them.
    topics: list[ListPartitionReassignmentsTopics] | None = None


class OngoingPartitionReassignment(Struct):
    partition_index: i32
    replicas: list[i32] = []
    adding_replicas: list[i32] = []
    removing_replicas: list[i32] = []


class OngoingTopicReassignment(Struct):
    name: string
    partitions: list[OngoingPartitionReassignment] = []


class ListPartitionReassignmentsResponse(Message):
    api_key: ClassVar = 46
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    #: Null: all of them.
    topics: list[OngoingTopicReassignment] = []
