"""Trying again: what is worth it, and for how long."""

from __future__ import annotations

import pytest

from zurau.client.errors import BrokerRefused, ClientError, ConnectionLost
from zurau.client.retry import FIRST_DELAY_S, LONGEST_DELAY_S, Backoff, retry
from zurau.wire.kafka.error_codes import ErrorCode


def test_the_first_success_is_the_answer():
    outcomes = iter([ConnectionLost("gone"), "answer"])

    def attempt():
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert retry(attempt, timeout_s=5) == "answer"


def test_what_will_not_pass_is_raised_at_once():
    attempts = []

    def attempt():
        attempts.append(1)
        raise ClientError("no")

    with pytest.raises(ClientError, match="no"):
        retry(attempt, timeout_s=5)
    assert len(attempts) == 1


def test_the_last_error_is_raised_at_the_deadline():
    def attempt():
        raise BrokerRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "writing")

    with pytest.raises(BrokerRefused, match="NOT_LEADER_OR_FOLLOWER"):
        retry(attempt, timeout_s=0)


def test_delays_grow_up_to_a_limit():
    backoff = Backoff()
    delays = [backoff.next_delay_s() for _ in range(20)]
    assert delays[0] <= FIRST_DELAY_S * 1.2
    assert max(delays) <= LONGEST_DELAY_S * 1.2
    assert min(delays[10:]) >= LONGEST_DELAY_S * 0.8
