"""ListTransactions: there are no transactions yet, in whatever state one looks for."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.wire.kafka.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

#: As Kafka calls them.
STATES = {
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
}


async def handle(request: ListTransactionsRequest, call: Call) -> ListTransactionsResponse:
    unknown = {state: None async for state in call.in_turns(request.state_filters) if state not in STATES}
    return ListTransactionsResponse(unknown_state_filters=list(unknown))
