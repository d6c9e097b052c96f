from __future__ import annotations

import asyncio
import threading

from zurau.counters import Counters
from zurau.errors import FlushFailed
from zurau.node.run_futures import as_future
from zurau.node.threads import FlushThread, Threads
from zurau.node.turns import LoopTurns
from zurau.pending import Pending


def test_a_defect_in_one_callback_leaves_the_others_theirs():
    async def run() -> list[int]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)
        threads = Threads(loop, LoopTurns(loop, Counters()), 1, "test")
        arrived: list[int] = []
        finished = asyncio.Event()

        def take(pending: Pending[int]) -> None:
            arrived.append(pending.result())
            if pending.result() == 9:
                finished.set()
            assert pending.result() % 2, "a defect of ours"

        for number in range(10):
            threads.run(lambda number=number: number).then(take)
        await asyncio.wait_for(finished.wait(), 10)
        threads.stop()
        return arrived

    assert asyncio.run(run()) == list(range(10))


def test_one_flush_does_not_wait_for_a_thousand_of_another_client():
    async def run() -> list[str]:
        loop = asyncio.get_running_loop()
        flusher = FlushThread(loop, LoopTurns(loop, Counters()))
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


def test_what_is_not_begun_when_threads_stop_is_never_begun():
    async def run() -> list[str]:
        loop = asyncio.get_running_loop()
        turns = LoopTurns(loop, Counters())
        done: list[str] = []
        gate = threading.Event()
        flusher, workers = FlushThread(loop, turns), Threads(loop, turns, 1, "test")
        for run in (flusher.flush, workers.run):
            began = threading.Event()
            run(lambda began=began: (began.set(), gate.wait(10)))
            await asyncio.to_thread(began.wait, 10)
            for _ in range(2):
                run(lambda: done.append("late"))
                await asyncio.sleep(0)  # what is asked for in one step is handed over together
        stops = [asyncio.to_thread(threads.stop) for threads in (flusher, workers)]
        stopping = asyncio.gather(*stops)
        async with asyncio.timeout(10):
            while flusher._asked.qsize() > 1 or workers._jobs.qsize() > 1:  # noqa: ASYNC110 - until both know it
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
    flusher = FlushThread(loop, LoopTurns(loop, Counters()), disk)
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


def test_many_logs_are_flushed_with_one_flush_of_everything():
    disk = CountingDisk()
    ways, asked = asyncio.run(flush_many(disk, 100))
    assert (disk.flushes, ways) == (1, ["together"] * 100)
    assert all(each.error is None for each in asked)


def test_a_few_logs_are_flushed_one_by_one():
    disk = CountingDisk()
    assert asyncio.run(flush_many(disk, 15))[0] == ["alone"] * 15
    assert disk.flushes == 0


def test_a_flush_of_everything_that_fails_has_failed_for_each_of_the_group():
    fault = FlushFailed("the disk reports an error")
    _, asked = asyncio.run(flush_many(CountingDisk(fault), 20))
    assert [each.error for each in asked] == [fault] * 20
