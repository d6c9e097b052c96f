from __future__ import annotations

import pytest

from zurau.api.kafka import describe_transactions, list_transactions
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_transactions import DescribeTransactionsRequest
from zurau.wire.kafka.messages.list_transactions import ListTransactionsRequest


@pytest.mark.parametrize("version", [0, 1, 2])
def test_there_are_no_transactions_to_list(ask, broker, version):
    request = ListTransactionsRequest(state_filters=["Ongoing", "Sleeping"], producer_id_filters=[])
    answer = ask(list_transactions, request, version, broker)
    assert (answer.error_code, answer.transaction_states) == (ErrorCode.NONE, [])
    assert answer.unknown_state_filters == ["Sleeping"]


def test_a_transaction_that_is_asked_for_is_not_found(ask, broker):
    answer = ask(describe_transactions, DescribeTransactionsRequest(transactional_ids=["a", "b"]), 0, broker)
    found = [(state.transactional_id, state.error_code) for state in answer.transaction_states]
    assert found == [("a", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), ("b", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)]
