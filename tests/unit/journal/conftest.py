"""Journals on an invented disk: one broker's life after another."""

from __future__ import annotations

import pytest

from zurau.journal.journal import Journal
from zurau.simulation.disk import SimulatedDisk
from zurau.simulation.world import VirtualClock, make_world


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(1)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def read(disk, clock):
    """The journal as the next start finds it, before it writes anything."""

    def read() -> Journal:
        clock.forget_timers()  # of the process before
        return Journal(make_world(disk, clock, boot_id=disk.boot_id))

    return read


@pytest.fixture
def begin(clock, read):
    """A start: all logs that it knows are opened and found in order."""

    def begin() -> Journal:
        journal = read()
        journal.begin()
        journal.recovered([])
        clock.advance(1000)
        return journal

    return begin
