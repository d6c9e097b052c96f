"""DescribeTopicPartitions (key 75), version 0: Metadata's answer about topics, page by page."""

from __future__ import annotations

from typing import ClassVar

from zurau.ids import NO_TOPIC_ID
from zurau.wire.kafka.schema import NOT_ASKED_FOR, Message, Request, Struct, boolean, i16, i32, string, uuid


class TopicRequest(Struct):
    name: string


class Cursor(Struct):
    topic_name: string
    partition_index: i32


class DescribeTopicPartitionsRequest(Request["DescribeTopicPartitionsResponse"]):
    api_key: ClassVar = 75
    flexible_since: ClassVar = 0

    topics: list[TopicRequest]
    response_partition_limit: i32 = 2000
    #: Where the page before this one ended.
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponsePartition(Struct, kw_only=True):
    error_code: i16 = 0
    partition_index: i32
    leader_id: i32
    leader_epoch: i32 = -1
    replica_nodes: list[i32] = []
    isr_nodes: list[i32] = []
    eligible_leader_replicas: list[i32] | None = None
    last_known_elr: list[i32] | None = None
    offline_replicas: list[i32] = []


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: i16 = 0
    name: string | None = None
    topic_id: uuid = NO_TOPIC_ID
    is_internal: boolean = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: i32 = NOT_ASKED_FOR


class DescribeTopicPartitionsResponse(Message):
    api_key: ClassVar = 75
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    #: Null: this was the last page.
    next_cursor: Cursor | None = None
