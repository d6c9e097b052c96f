"""Memory for answers: how much may be read, and who waits."""

from __future__ import annotations

from zurau.api.response_memory import GROW_WITHIN_MS, SMALL_BYTES, ResponseMemory, ResponseShare
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


def test_large_answers_are_made_one_after_the_other():
    memory = ResponseMemory(MIB, Counters())
    making = [start(memory.turn_to_make()) for _ in range(3)]
    assert [each.is_done for each in making] == [True, False, False]
    memory.made()
    assert [each.is_done for each in making] == [True, True, False]
    memory.made()
    memory.made()
    assert start(memory.turn_to_make()).is_done


def test_whoever_leaves_the_line_of_makers_keeps_nobody_waiting():
    memory = ResponseMemory(MIB, Counters())
    resumed = []
    first, waiting = start(memory.turn_to_make()), start(memory.turn_to_make())
    leaving, last = start(memory.turn_to_make(), resumed.append), start(memory.turn_to_make())
    assert first.is_done
    waiting.end()
    memory.made()
    assert resumed == [leaving]  # its turn has come, and it has not gone on yet
    leaving.end()
    assert last.is_done


def test_a_large_answer_leaves_what_is_kept_for_small_ones():
    memory, clock = ResponseMemory(MIB, Counters()), VirtualClock()
    assert start(memory.may_grow(clock)).result()
    memory.changed(MIB - memory.reserve_bytes + 1)
    waiting = start(memory.may_grow(clock))
    assert not waiting.is_done
    assert memory.room() == SMALL_BYTES
    memory.changed(-1)
    assert waiting.result()


def test_a_large_answer_that_finds_no_room_for_long_is_given_up():
    memory, clock = ResponseMemory(MIB, Counters()), VirtualClock()
    memory.changed(MIB)
    waiting = start(memory.may_grow(clock))
    clock.advance(GROW_WITHIN_MS)
    assert waiting.result() is False
