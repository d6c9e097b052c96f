"""CreatePartitions (key 37), versions 0 to 3: raise the number of partitions of a topic."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, boolean, i16, i32, string


class CreatePartitionsAssignment(Struct):
    broker_ids: list[i32]


class CreatePartitionsTopic(Struct):
    name: string
    #: How many there shall be in all.
    count: i32
    #: Brokers of the new partitions; null: the broker chooses.
    assignments: list[CreatePartitionsAssignment] | None = None


class CreatePartitionsRequest(Request["CreatePartitionsResponse"]):
    api_key: ClassVar = 37
    flexible_since: ClassVar = 2

    topics: list[CreatePartitionsTopic]
    timeout_ms: i32
    validate_only: boolean = False


class CreatePartitionsTopicResult(Struct):
    name: string
    error_code: i16 = 0
    error_message: string | None = None


class CreatePartitionsResponse(Message):
    api_key: ClassVar = 37
    flexible_since: ClassVar = 2

    throttle_time_ms: i32 = 0
    results: list[CreatePartitionsTopicResult] = []
