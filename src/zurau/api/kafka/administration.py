"""The deadline of what changes the cluster: topics that are created, enlarged or deleted.

As with Kafka's controller: a request whose time is over before it is begun (`timeout_ms` is 0 or less) changes nothing.
One that was begun is carried on when its time is over; whoever asked is told that it timed out, and looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from zurau.api.kafka.call import Call
from zurau.broker.waiting import with_timeout
from zurau.errors import Refused
from zurau.pending import Pending, all_of, start
from zurau.wire.kafka.error_codes import ErrorCode

Item = TypeVar("Item")
Result = TypeVar("Result")


async def change_each(
    items: Sequence[Item], change: Callable[[Item], Coroutine[Any, None, Result]], timeout_ms: int, call: Call
) -> list[Result | Refused]:
    """What became of each within the time. All are asked for before the first is awaited: they share one flush."""
    if timeout_ms <= 0:
        return [Refused(ErrorCode.REQUEST_TIMED_OUT, "timeout_ms leaves no time, so nothing was begun")] * len(items)
    answers: list[Pending[Result]] = [start(change(item)) async for item in call.in_turns(items)]
    await with_timeout(timeout_ms, all_of(answers), call.broker.clock)
    return [answer.result() if answer.is_done else _timed_out(timeout_ms) for answer in answers]


def _timed_out(timeout_ms: int) -> Refused:
    return Refused(ErrorCode.REQUEST_TIMED_OUT, f"it was begun, and is not done after {timeout_ms} ms; it goes on")
