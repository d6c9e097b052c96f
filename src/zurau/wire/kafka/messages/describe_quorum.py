"""DescribeQuorum (key 55), versions 0 to 2: who keeps the metadata log, and how far is everyone?"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, i64, since, string, u16, uuid

#: The replica did not say which disk it is on.
NO_DIRECTORY_ID = bytes(16)


class QuorumPartition(Struct):
    partition_index: i32


class QuorumTopic(Struct):
    topic_name: string
    partitions: list[QuorumPartition]


class DescribeQuorumRequest(Request["DescribeQuorumResponse"]):
    api_key: ClassVar = 55
    flexible_since: ClassVar = 0

    topics: list[QuorumTopic]


class ReplicaState(Struct, kw_only=True):
    replica_id: i32
    replica_directory_id: Annotated[uuid, since(2)] = NO_DIRECTORY_ID
    log_end_offset: i64
    last_fetch_timestamp: Annotated[i64, since(1)] = -1
    last_caught_up_timestamp: Annotated[i64, since(1)] = -1


class PartitionData(Struct, kw_only=True):
    partition_index: i32
    error_code: i16 = 0
    error_message: Annotated[string | None, since(2)] = None
    leader_id: i32
    leader_epoch: i32
    high_watermark: i64
    #: Each with the end of its log; the leader is one of them.
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []


class TopicData(Struct):
    topic_name: string
    partitions: list[PartitionData] = []


class Listener(Struct):
    name: string
    host: string
    port: u16


class Node(Struct):
    node_id: i32
    listeners: list[Listener] = []


class DescribeQuorumResponse(Message):
    api_key: ClassVar = 55
    flexible_since: ClassVar = 0

    error_code: i16 = 0
    error_message: Annotated[string | None, since(2)] = None
    topics: list[TopicData] = []
    nodes: Annotated[list[Node], since(2)] = []
