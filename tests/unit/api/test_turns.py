from __future__ import annotations

import pytest

from zurau.api.turns import InTurns, finish_in_turns
from zurau.pending import start
from zurau.ports import EndlessTurn
from zurau.simulation.world import ShortTurns, VirtualClock


@pytest.fixture
def clock():
    return VirtualClock()


async def doubled(items, turns):
    return [item * 2 async for item in InTurns(items, turns)]


def test_while_the_turn_lasts_nobody_waits():
    assert start(doubled([1, 2, 3], EndlessTurn())).result() == [2, 4, 6]


def test_a_single_item_never_waits_for_a_turn(clock):
    assert start(doubled([1], ShortTurns(clock))).result() == [2]


def test_others_are_served_between_items_when_the_turn_is_over(clock):
    outcome = start(doubled([1, 2, 3], ShortTurns(clock)))
    assert not outcome.is_done
    clock.advance(0)
    assert outcome.result() == [2, 4, 6]


def test_a_generator_is_finished_in_turns(clock):
    def steps():
        yield
        yield
        return "done"

    outcome = start(finish_in_turns(steps(), ShortTurns(clock)))
    assert not outcome.is_done
    clock.advance(0)
    assert outcome.result() == "done"
