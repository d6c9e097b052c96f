from __future__ import annotations

import pytest

from zurau.api.kafka import init_producer_id
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.init_producer_id import InitProducerIdRequest


@pytest.mark.parametrize("version", range(6))
def test_each_producer_gets_an_id_of_its_own_in_every_version(ask, broker, version):
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    first, second = (ask(init_producer_id, request, version, broker) for _ in range(2))
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert first.producer_id != second.producer_id >= 0


def test_a_producer_that_names_its_old_id_gets_a_new_one(ask, broker):
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0, producer_id=7, producer_epoch=3)
    response = ask(init_producer_id, request, 3, broker)
    assert (response.error_code, response.producer_epoch) == (0, 0)
    assert response.producer_id != 7


def test_transactions_are_refused_with_a_code_at_which_clients_stop(ask, broker):
    request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=0)
    response = ask(init_producer_id, request, 5, broker)
    assert response.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize("fields", [{"transactional_id": ""}, {"producer_id": 7}, {"producer_epoch": 1}])
def test_half_an_identity_is_refused(ask, broker, fields):
    request = InitProducerIdRequest(**{"transactional_id": None, "transaction_timeout_ms": 0, **fields})
    assert ask(init_producer_id, request, 3, broker).error_code == ErrorCode.INVALID_REQUEST


def test_ids_are_not_given_out_again_after_a_restart(ask, broker, make_broker):
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    before = ask(init_producer_id, request, 0, broker).producer_id
    broker.close()
    assert ask(init_producer_id, request, 0, make_broker()).producer_id > before
