"""Who has to go when memory for answers is short."""

from __future__ import annotations

import pytest

from zurau.api.response_memory import ResponseMemory, ResponseShare
from zurau.counters import Counters
from zurau.node.slow_readers import LOOK_MS, PATIENCE_MS, PATIENCE_WITHOUT_MEMORY_MS, SlowReaders
from zurau.settings import MIB
from zurau.simulation.world import VirtualClock


class Client:
    """A connection whose client reads as the test wants."""

    def __init__(self, memory: ResponseMemory, unsent_bytes: int) -> None:
        self.responses = ResponseShare(memory)
        self.unsent_bytes = unsent_bytes
        self.is_open = True

    def abort(self) -> None:
        self.is_open = False

    def describe(self) -> str:
        return "a client"


@pytest.fixture
def memory() -> ResponseMemory:
    return ResponseMemory(100 * MIB, Counters())


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def add(memory, clock):
    readers = SlowReaders(memory, clock, Counters())

    def add(unsent_bytes: int) -> Client:
        client = Client(memory, unsent_bytes)
        readers.add(client)
        return client

    return add


def test_while_there_is_memory_a_client_may_take_its_time(add, clock):
    client = add(50 * MIB)
    clock.advance(100 * PATIENCE_MS)
    assert client.is_open


def test_when_memory_is_short_whoever_takes_nothing_for_ten_seconds_goes_the_largest_first(add, clock):
    large, small = add(60 * MIB), add(20 * MIB)
    clock.advance(PATIENCE_MS - LOOK_MS)
    assert large.is_open
    clock.advance(2 * LOOK_MS)
    assert (large.is_open, small.is_open) == (False, True)


def test_when_all_memory_is_used_a_second_is_long_enough(add, clock, memory):
    clients = [add(25 * MIB) for _ in range(4)]
    clock.advance(PATIENCE_WITHOUT_MEMORY_MS + LOOK_MS)
    assert [client.is_open for client in clients].count(False) == 1
    assert memory.free_bytes == 25 * MIB


def test_whoever_reads_stays(add, clock):
    reading, stalled = add(60 * MIB), add(50 * MIB)
    for _ in range(40):
        clock.advance(LOOK_MS)
        reading.unsent_bytes -= MIB // 10
    assert (reading.is_open, stalled.is_open) == (True, False)


def test_far_beyond_the_limit_the_largest_goes_at_once(add, memory):
    clients = [add(size * MIB) for size in (40, 50, 30, 10)]
    assert [client.is_open for client in clients] == [True, False, True, True]
    assert memory.held_bytes == 80 * MIB


def test_what_was_taken_meanwhile_is_free_for_others(add, clock, memory):
    client = add(90 * MIB)
    client.unsent_bytes = 10 * MIB
    clock.advance(LOOK_MS)
    assert memory.free_bytes == 90 * MIB
