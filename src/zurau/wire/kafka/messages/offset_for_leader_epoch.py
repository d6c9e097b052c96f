"""OffsetForLeaderEpoch (key 23), versions 2 to 4: where did this epoch end?

A consumer or follower asks after a change of leader, to find out whether what it has read or written still stands.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, i64, since, string


class OffsetForLeaderPartition(Struct, kw_only=True):
    partition: i32
    #: The epoch in which the asker believes; -1: do not compare.
    current_leader_epoch: i32 = -1
    #: The epoch whose end is asked for.
    leader_epoch: i32


class OffsetForLeaderTopic(Struct):
    topic: string
    partitions: list[OffsetForLeaderPartition]


class OffsetForLeaderEpochRequest(Request["OffsetForLeaderEpochResponse"], kw_only=True):
    api_key: ClassVar = 23
    flexible_since: ClassVar = 4

    #: -2: a consumer asks; -1 would be any replica.
    replica_id: Annotated[i32, since(3)] = -2
    topics: list[OffsetForLeaderTopic]


class EpochEndOffset(Struct, kw_only=True):
    error_code: i16 = 0
    partition: i32
    #: The greatest epoch not above the one asked for; -1: there is none.
    leader_epoch: i32 = -1
    end_offset: i64 = -1


class OffsetForLeaderTopicResult(Struct):
    topic: string
    partitions: list[EpochEndOffset] = []


class OffsetForLeaderEpochResponse(Message):
    api_key: ClassVar = 23
    flexible_since: ClassVar = 4

    throttle_time_ms: i32 = 0
    topics: list[OffsetForLeaderTopicResult] = []
