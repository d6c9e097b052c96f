"""Timers of a machine."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zurau.machines.groups.step import Deadlines, Timer, TimerKind

TIMERS = [Timer(TimerKind.SESSION, "g", name) for name in "abc"]
A, B, C = TIMERS


def test_timers_come_up_in_order_of_time():
    deadlines = Deadlines()
    deadlines.set(A, 20)
    deadlines.set(B, 10)
    assert deadlines.next_ms() == 10
    assert [deadlines.pop_due(20), deadlines.pop_due(20), deadlines.pop_due(20)] == [B, A, None]


def test_a_timer_that_is_set_again_moves_either_way():
    deadlines = Deadlines()
    deadlines.set(A, 20)
    deadlines.set(A, 30)
    assert deadlines.next_ms() == 30
    deadlines.set(A, 10)
    assert deadlines.next_ms() == 10


def test_a_cancelled_timer_does_not_come_up():
    deadlines = Deadlines()
    deadlines.set(A, 20)
    deadlines.cancel(A)
    assert A not in deadlines
    assert deadlines.next_ms() is None


def test_putting_a_timer_off_does_not_grow_the_heap():
    deadlines = Deadlines()
    for at_ms in range(1000):
        deadlines.set(A, at_ms)
    assert len(deadlines._heap) == 1


@given(st.lists(st.tuples(st.sampled_from(TIMERS), st.none() | st.integers(0, 50), st.booleans())))
def test_timers_behave_as_a_dictionary_of_times(steps):
    deadlines, model = Deadlines(), {}
    for timer, at_ms, fires in steps:
        if at_ms is None:
            deadlines.cancel(timer)
            model.pop(timer, None)
        else:
            deadlines.set(timer, at_ms)
            model[timer] = at_ms
        assert deadlines.next_ms() == min(model.values(), default=None)
        if fires and model:
            fired = deadlines.pop_due(50)
            assert model.pop(fired) <= min(model.values(), default=50)
