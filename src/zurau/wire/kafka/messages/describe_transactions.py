"""DescribeTransactions (key 65), version 0: how far are these transactions?"""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, i64, string


class DescribeTransactionsRequest(Request["DescribeTransactionsResponse"]):
    api_key: ClassVar = 65
    flexible_since: ClassVar = 0

    transactional_ids: list[string]


class TopicData(Struct):
    topic: string
    partitions: list[i32] = []


class TransactionState(Struct, kw_only=True):
    error_code: i16 = 0
    transactional_id: string
    transaction_state: string
    transaction_timeout_ms: i32
    transaction_start_time_ms: i64
    producer_id: i64
    producer_epoch: i16
    topics: list[TopicData] = []


class DescribeTransactionsResponse(Message):
    api_key: ClassVar = 65
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    transaction_states: list[TransactionState] = []
