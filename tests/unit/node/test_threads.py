from __future__ import annotations

import asyncio
import threading

from zurau.counters import Counters
from zurau.node.threads import Threads
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


def test_what_is_not_begun_when_threads_stop_is_never_begun():
    async def run() -> list[str]:
        loop = asyncio.get_running_loop()
        turns = LoopTurns(loop, Counters())
        done: list[str] = []
        gate = threading.Event()
        workers = Threads(loop, turns, 1, "test")
        began = threading.Event()
        workers.run(lambda: (began.set(), gate.wait(10)))
        await asyncio.to_thread(began.wait, 10)
        for _ in range(2):
            workers.run(lambda: done.append("late"))
        stopping = asyncio.create_task(asyncio.to_thread(workers.stop))
        async with asyncio.timeout(10):
            while workers._jobs.qsize() > 1:  # noqa: ASYNC110 - until it knows it
                await asyncio.sleep(0.001)
        gate.set()
        await stopping
        return done

    assert asyncio.run(run()) == []
