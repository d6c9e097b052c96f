from __future__ import annotations

import asyncio
import threading

from zurau.counters import Counters
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


def test_one_flush_does_not_wait_for_a_thousand_that_were_asked_for_before():
    async def run() -> list[str]:
        loop = asyncio.get_running_loop()
        flusher = FlushThread(loop, LoopTurns(loop, Counters()))
        order: list[str] = []
        gate, has_begun, all_asked = threading.Event(), threading.Event(), threading.Event()

        def begin() -> None:
            order.append("many")
            has_begun.set()
            all_asked.wait(10)

        flusher.flush(lambda: gate.wait(10))
        flusher.flush(begin)
        for _ in range(999):
            flusher.flush(lambda: order.append("many"))
        gate.set()
        await asyncio.to_thread(has_begun.wait, 10)
        flusher.flush(lambda: order.append("one"))
        all_asked.set()
        await asyncio.to_thread(flusher.stop)
        return order

    order = asyncio.run(run())
    assert len(order) == 1001
    assert order.index("one") < 4
