from __future__ import annotations

import asyncio
import threading

import pytest

from zurau.counters import Counters
from zurau.errors import FlushFailed
from zurau.node import flush_threads
from zurau.node.flush_threads import FlushThreads
from zurau.node.run_futures import as_future
from zurau.node.turns import LoopTurns
from zurau.pending import Pending


@pytest.fixture
def one_thread(monkeypatch):
    monkeypatch.setattr(flush_threads, "FLUSH_THREADS", 1)


def test_one_flush_does_not_wait_for_a_thousand_of_another_client(one_thread):
    async def run() -> list[str]:
        loop = asyncio.get_running_loop()
        flusher = FlushThreads(loop, LoopTurns(loop, Counters()))
        order: list[str] = []
        gate = threading.Event()
        flusher.flush(lambda: gate.wait(10), "many")
        for _ in range(1000):
            last = flusher.flush(lambda: order.append("many"), "many")
        flusher.flush(lambda: order.append("one"), "another")
        gate.set()
        await asyncio.wait_for(as_future(last), 10)
        flusher.stop()
        return order

    order = asyncio.run(run())
    assert len(order) == 1001
    assert order.index("one") < 2


def test_somebody_else_is_flushed_while_one_client_flushes_all_that_it_can():
    """Each of its flushes takes as long as it likes: they end only when the other's is done."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        flusher = FlushThreads(loop, LoopTurns(loop, Counters()))
        other_is_done = threading.Event()
        large = [flusher.flush(lambda: other_is_done.wait(10), "large") for _ in range(20)]
        await asyncio.sleep(0)
        other = flusher.flush(lambda: None, "other")
        await asyncio.wait_for(as_future(other), 5)
        other_is_done.set()
        for each in large:
            await asyncio.wait_for(as_future(each), 10)
        flusher.stop()

    asyncio.run(run())


def test_flushes_of_several_logs_are_under_way_at_the_same_time():
    async def run() -> None:
        loop = asyncio.get_running_loop()
        flusher = FlushThreads(loop, LoopTurns(loop, Counters()))
        both = threading.Barrier(2, timeout=10)
        for each in [flusher.flush(both.wait, "one"), flusher.flush(both.wait, "one")]:
            await asyncio.wait_for(as_future(each), 10)
        flusher.stop()

    asyncio.run(run())


def test_what_is_not_begun_when_flush_threads_stop_is_never_begun(one_thread):
    async def run() -> list[str]:
        loop = asyncio.get_running_loop()
        flusher = FlushThreads(loop, LoopTurns(loop, Counters()))
        done: list[str] = []
        began, gate = threading.Event(), threading.Event()
        flusher.flush(lambda: (began.set(), gate.wait(10)))
        await asyncio.to_thread(began.wait, 10)
        for _ in range(2):
            flusher.flush(lambda: done.append("late"))
            await asyncio.sleep(0)  # what is asked for in one step is handed over together
        stopping = asyncio.create_task(asyncio.to_thread(flusher.stop))
        async with asyncio.timeout(10):
            while not flusher._is_stopping:  # noqa: ASYNC110 - until it knows it
                await asyncio.sleep(0.001)
        gate.set()
        await stopping
        return done

    assert asyncio.run(run()) == []


class CountingDisk:
    """Can do no more than be flushed as a whole."""

    def __init__(self, fault: FlushFailed | None = None) -> None:
        self.flushes = 0
        self._fault = fault

    def flush_all(self) -> None:
        self.flushes += 1
        if self._fault is not None:
            raise self._fault


async def flush_many(disk: CountingDisk, count: int) -> tuple[list[str], list[Pending[None]]]:
    """Ask for so many flushes while one is under way; returns how each was done, and what came of it."""
    loop = asyncio.get_running_loop()
    flusher = FlushThreads(loop, LoopTurns(loop, Counters()), disk)
    ways: list[str] = []
    gate = threading.Event()

    def after_all(fault: FlushFailed | None) -> None:
        ways.append("together")
        if fault is not None:
            raise fault

    flusher.flush(lambda: gate.wait(10), "first")
    asked = [flusher.flush(lambda: ways.append("alone"), number, after_all) for number in range(count)]
    flusher._alone_s = 1.0  # as if each took so long by itself
    all_told = asyncio.Event()
    asked[-1].then(lambda _: all_told.set())
    gate.set()
    await asyncio.wait_for(all_told.wait(), 10)
    flusher.stop()
    return ways, asked


def test_many_logs_are_flushed_with_one_flush_of_everything(one_thread):
    disk = CountingDisk()
    ways, asked = asyncio.run(flush_many(disk, 100))
    assert (disk.flushes, ways) == (1, ["together"] * 100)
    assert all(each.error is None for each in asked)


def test_a_few_logs_are_flushed_one_by_one(one_thread):
    disk = CountingDisk()
    assert asyncio.run(flush_many(disk, 15))[0] == ["alone"] * 15
    assert disk.flushes == 0


def test_a_flush_of_everything_that_fails_has_failed_for_each_of_the_group(one_thread):
    fault = FlushFailed("the disk reports an error")
    _, asked = asyncio.run(flush_many(CountingDisk(fault), 20))
    assert [each.error for each in asked] == [fault] * 20
