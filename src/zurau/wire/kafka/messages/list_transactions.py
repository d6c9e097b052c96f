"""ListTransactions (key 66), versions 0 to 2: which transactions does this broker coordinate?"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, i64, since, string


class ListTransactionsRequest(Request["ListTransactionsResponse"]):
    api_key: ClassVar = 66
    flexible_since: ClassVar = 0

    state_filters: list[string]
    producer_id_filters: list[i64]
    duration_filter: Annotated[i64, since(1)] = -1
    transactional_id_pattern: Annotated[string | None, since(2)] = None


class TransactionState(Struct):
    transactional_id: string
    producer_id: i64
    transaction_state: string


class ListTransactionsResponse(Message):
    api_key: ClassVar = 66
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    unknown_state_filters: list[string] = []
    transaction_states: list[TransactionState] = []
