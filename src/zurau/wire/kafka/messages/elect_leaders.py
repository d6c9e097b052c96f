"""ElectLeaders (key 43), versions 0 to 2: let the preferred replica lead, or any that lives."""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i8, i16, i32, since, string


class TopicPartitions(Struct):
    topic: string
    partitions: list[i32]


class ElectLeadersRequest(Request["ElectLeadersResponse"]):
    api_key: ClassVar = 43
    flexible_since: ClassVar = 2

    #: 0: the preferred replica, 1: any living one, even if records are lost.
    election_type: Annotated[i8, since(1)] = 0
    #: Null: all partitions.
    topic_partitions: list[TopicPartitions] | None = None
    timeout_ms: i32 = 60000


class PartitionResult(Struct):
    partition_id: i32
    error_code: i16 = 0
    error_message: string | None = None


class ReplicaElectionResult(Struct):
    topic: string
    partition_result: list[PartitionResult] = []


class ElectLeadersResponse(Message):
    api_key: ClassVar = 43
    flexible_since: ClassVar = 2

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(1)] = 0
    replica_election_results: list[ReplicaElectionResult] = []
