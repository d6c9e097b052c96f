"""The bystander itself: without an attack it waits for nothing."""

from __future__ import annotations

from attack import WAIT_ALLOWED_S


def test_a_bystander_of_a_quiet_broker_is_served_at_once(broker, watch) -> None:
    bystander = watch(broker)
    bystander.join(0.5)
    assert bystander.finish() < WAIT_ALLOWED_S
