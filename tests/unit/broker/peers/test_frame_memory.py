"""Frames of all connections together have so much memory, and wait for each other beyond that."""

from __future__ import annotations

import pytest

from zurau.broker.peers import frame_memory
from zurau.broker.peers.frame_memory import FrameMemory


class Holder:
    def __init__(self) -> None:
        self.let_in_count = 0

    def let_in(self) -> None:
        self.let_in_count += 1


@pytest.fixture
def memory(monkeypatch) -> FrameMemory:
    monkeypatch.setattr(frame_memory, "ARRIVING_BYTES_MAX", 100)
    return FrameMemory()


def test_frames_that_fit_together_are_let_in_at_once(memory):
    assert memory.take(Holder(), 60)
    assert memory.take(Holder(), 40)
    assert memory.held_bytes == 100


def test_one_that_does_not_fit_waits_until_another_was_heard(memory):
    first, second = Holder(), Holder()
    assert memory.take(first, 60)
    assert not memory.take(second, 41)
    memory.give_back(first)
    assert (second.let_in_count, memory.held_bytes) == (1, 41)


def test_one_alone_is_let_in_however_large(memory):
    large = Holder()
    assert memory.take(large, 1000)
    assert not memory.take(Holder(), 1)


def test_nobody_overtakes_a_large_one_that_waits(memory):
    first, large, small = Holder(), Holder(), Holder()
    assert memory.take(first, 60)
    assert not memory.take(large, 90)
    assert not memory.take(small, 10)
    memory.give_back(first)
    assert (large.let_in_count, small.let_in_count, memory.held_bytes) == (1, 1, 100)


def test_one_that_goes_while_it_waits_or_holds_leaves_its_place(memory):
    first, second, third = Holder(), Holder(), Holder()
    memory.take(first, 100)
    memory.take(second, 100)
    memory.take(third, 100)
    memory.give_back(second)
    memory.give_back(first)
    assert (second.let_in_count, third.let_in_count) == (0, 1)
    memory.give_back(third)
    memory.give_back(third)
    assert memory.held_bytes == 0
