from __future__ import annotations

import pytest

from zurau.alarm import Alarm
from zurau.simulation.world import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def woken(clock) -> list[float]:
    """The moments at which it woke."""
    return []


@pytest.fixture
def alarm(clock, woken) -> Alarm:
    return Alarm(clock, lambda: woken.append(clock.monotonic_ms()))


def test_it_wakes_at_the_earliest_deadline_that_it_was_told(clock, alarm, woken):
    start = clock.monotonic_ms()
    for deadline_ms in (300, 100, 200):
        alarm.no_later_than(start + deadline_ms)
    clock.advance(1000)
    assert woken == [start + 100]


def test_after_it_woke_it_can_be_set_anew(clock, alarm, woken):
    start = clock.monotonic_ms()
    alarm.no_later_than(start + 100)
    clock.advance(150)
    alarm.no_later_than(start + 400)
    clock.advance(1000)
    assert woken == [start + 100, start + 400]


def test_a_deadline_that_has_passed_wakes_at_once(clock, alarm, woken):
    alarm.no_later_than(clock.monotonic_ms() - 5)
    clock.advance(0)
    assert len(woken) == 1


def test_one_that_is_cancelled_wakes_nobody_and_can_be_set_anew(clock, alarm, woken):
    start = clock.monotonic_ms()
    alarm.no_later_than(start + 100)
    alarm.cancel()
    clock.advance(200)
    assert woken == []
    alarm.no_later_than(start + 300)
    clock.advance(200)
    assert woken == [start + 300]
