from __future__ import annotations

import asyncio

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
