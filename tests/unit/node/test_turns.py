"""The loop's time, shared out."""

from __future__ import annotations

import asyncio
import time

import pytest
import uvloop

from zurau.counters import Counters
from zurau.node.turns import TURN_S, LoopTurns


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.Loop], ids=["asyncio", "uvloop"])
def run(request):
    """Runs a coroutine function with the turns of a loop."""

    def run(main):
        async def with_turns():
            counters = Counters()
            return await main(LoopTurns(asyncio.get_running_loop(), counters), counters)

        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(with_turns())

    return run


def spend(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


async def some_rounds() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_turn_is_over_when_its_time_is_spent_and_for_whoever_never_began_one(run):
    async def main(turns, _):
        before = turns.is_over()
        during = all(_is_over_at_once(turns) for _ in range(1000))  # on a busy machine some are
        spend(TURN_S * 1.1)
        return before, during, turns.is_over()

    assert run(main) == (True, False, True)


def _is_over_at_once(turns):
    turns.begin()
    return turns.is_over()


def test_those_in_line_are_called_in_order_with_the_loop_in_between(run):
    async def main(turns, _):
        called: list[object] = []

        def work(number: int) -> None:
            called.append(number)
            spend(TURN_S)

        for number in range(3):
            turns.later(lambda number=number: work(number))
        asyncio.get_running_loop().call_soon(lambda: called.append("something else"))
        await some_rounds()
        return called

    called = run(main)
    assert [each for each in called if each != "something else"] == [0, 1, 2]
    assert called[-1] != "something else"


def test_a_defect_of_one_in_line_leaves_the_others_their_turn(run):
    async def main(turns, _):
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        called: list[str] = []

        def fail() -> None:
            raise KeyError("a defect")

        turns.later(fail)
        turns.later(lambda: called.append("the next one"))
        await some_rounds()
        return called

    assert run(main) == ["the next one"]


def test_whoever_asks_for_the_next_turn_gets_it(run):
    async def main(turns, _):
        pending = turns.next()
        was_done = pending.is_done
        await some_rounds()
        return was_done, pending.is_done

    assert run(main) == (False, True)


def test_a_long_step_is_counted_and_said_once_a_second(run, caplog):
    async def main(turns, counters):
        for _ in range(3):
            turns.begin()
            spend(0.11)
            turns.end("a test")
        return counters

    counters = run(main)
    assert counters.slow_steps == 3
    assert counters.slowest_step_ms >= 110
    assert len(caplog.messages) == 1
    assert "by a test" in caplog.messages[0]


def test_unfinished_work_of_many_does_not_hold_up_who_has_not_begun(run):
    async def main(turns, _):
        order = []
        for number in range(100):
            turns.next().then(lambda _, number=number: order.append(number))
        turns.later(lambda: order.append("new"))
        await some_rounds()
        return order

    assert run(main)[:3] == ["new", 0, 1]
