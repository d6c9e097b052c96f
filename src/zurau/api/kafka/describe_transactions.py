"""DescribeTransactions: there are no transactions yet."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)


async def handle(request: DescribeTransactionsRequest, call: Call) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[
            TransactionState(
                error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if name else ErrorCode.INVALID_REQUEST,
                transactional_id=name,
                transaction_state="",
                transaction_timeout_ms=0,
                transaction_start_time_ms=0,
                producer_id=0,
                producer_epoch=0,
            )
            async for name in call.in_turns(request.transactional_ids)
        ]
    )
