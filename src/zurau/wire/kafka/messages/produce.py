"""Produce (key 0), versions 3 to 11: append these batches.

Versions below 3 carry older record formats. From version 10 on, a broker that does not lead a partition says who does
(KIP-951). A request with `acks` 0 is not answered.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka import schema
from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, i64, since, string, tagged


class PartitionProduceData(Struct):
    index: i32
    records: schema.records | None = None


class TopicProduceData(Struct):
    name: string
    partition_data: list[PartitionProduceData]


class ProduceRequest(Request["ProduceResponse"], kw_only=True):
    api_key: ClassVar = 0
    flexible_since: ClassVar = 9

    transactional_id: string | None = None
    #: 0: no answer; 1: once the leader has it; -1: once all in-sync replicas have it.
    acks: i16
    timeout_ms: i32
    topic_data: list[TopicProduceData]


class BatchIndexAndErrorMessage(Struct):
    batch_index: i32
    batch_index_error_message: string | None = None


class LeaderIdAndEpoch(Struct):
    """Who leads instead; -1 when that is not known either."""

    leader_id: i32 = -1
    leader_epoch: i32 = -1


class PartitionProduceResponse(Struct, kw_only=True):
    index: i32
    error_code: i16 = 0
    base_offset: i64
    #: -1 when the topic keeps the producer's timestamps.
    log_append_time_ms: i64 = -1
    log_start_offset: Annotated[i64, since(5)] = -1
    #: The records for which the batch was refused.
    record_errors: Annotated[list[BatchIndexAndErrorMessage], since(8)] = []
    error_message: Annotated[string | None, since(8)] = None
    current_leader: Annotated[LeaderIdAndEpoch, tagged(0, since=10)] = LeaderIdAndEpoch()


class TopicProduceResponse(Struct):
    name: string
    partition_responses: list[PartitionProduceResponse] = []


class NodeEndpoint(Struct):
    node_id: i32
    host: string
    port: i32
    rack: string | None = None


class ProduceResponse(Message):
    api_key: ClassVar = 0
    flexible_since: ClassVar = 9

    responses: list[TopicProduceResponse] = []
    throttle_time_ms: i32 = 0
    #: Addresses of the leaders named in `current_leader`.
    node_endpoints: Annotated[list[NodeEndpoint], tagged(0, since=10)] = []
