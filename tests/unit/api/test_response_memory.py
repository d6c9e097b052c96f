"""Memory for answers: how much may be read, and who waits."""

from __future__ import annotations

from zurau.api.response_memory import SMALL_BYTES, WAIT_MS_MIN, ResponseMemory, ResponseShare
from zurau.counters import Counters
from zurau.pending import start
from zurau.settings import MIB
from zurau.simulation.world import VirtualClock


def test_whoever_comes_next_finds_room_too():
    memory = ResponseMemory(100 * MIB, Counters())
    granted = []
    for _ in range(200):
        granted.append(memory.room())
        memory.changed(granted[-1])
    assert granted[0] > granted[1] > granted[5] >= SMALL_BYTES
    assert memory.free_bytes > 0


def test_when_all_is_used_there_is_no_room():
    memory = ResponseMemory(MIB, Counters())
    memory.changed(MIB)
    assert memory.room() == 0


def test_those_who_wait_are_called_in_order_as_room_appears():
    memory, clock = ResponseMemory(MIB, Counters()), VirtualClock()
    memory.changed(MIB)
    order = []

    async def fetch(name: str) -> None:
        assert await memory.wait_for_room(5000, clock) > 0
        order.append(name)
        memory.changed(SMALL_BYTES)

    waiting = [start(fetch(name)) for name in "abc"]
    memory.changed(-2 * SMALL_BYTES)
    assert order == ["a", "b"]
    memory.changed(-SMALL_BYTES)
    assert order == ["a", "b", "c"]
    assert all(each.is_done for each in waiting)


def test_whoever_is_ended_while_it_waits_leaves_the_line():
    memory, clock = ResponseMemory(MIB, Counters()), VirtualClock()
    memory.changed(MIB)
    gone, waiting = start(memory.wait_for_room(5000, clock)), start(memory.wait_for_room(5000, clock))
    gone.end()
    memory.changed(-SMALL_BYTES)
    assert waiting.is_done


def test_a_share_gives_back_exactly_what_it_took():
    counters = Counters()
    share = ResponseShare(ResponseMemory(MIB, counters))
    share.take(1000)
    share.take(500)
    share.settle(700)
    assert counters.response_bytes == share.held_bytes == 700
    share.settle(0)
    assert counters.response_bytes == 0


def test_long_answers_are_made_one_after_the_other():
    memory, clock = ResponseMemory(MIB, Counters()), VirtualClock()
    making = [start(memory.may_make(clock)) for _ in range(3)]
    assert [each.is_done for each in making] == [True, False, False]
    memory.made()
    assert [each.is_done for each in making] == [True, True, False]
    memory.made()
    memory.made()
    assert start(memory.may_make(clock)).result()


def test_whoever_leaves_the_line_of_makers_keeps_nobody_waiting():
    memory, clock = ResponseMemory(MIB, Counters()), VirtualClock()
    resumed = []
    first, waiting = start(memory.may_make(clock)), start(memory.may_make(clock))
    leaving, last = start(memory.may_make(clock), resumed.append), start(memory.may_make(clock))
    assert first.result()
    waiting.end()
    memory.made()
    assert resumed == [leaving]  # its turn has come, and it has not gone on yet
    leaving.end()
    assert last.result()


def test_no_long_answer_is_made_without_room():
    memory, clock = ResponseMemory(MIB, Counters()), VirtualClock()
    memory.changed(MIB)
    refused, later = start(memory.may_make(clock)), start(memory.may_make(clock))
    clock.advance(WAIT_MS_MIN)
    assert refused.result() is False
    memory.changed(-MIB)
    assert later.result()
