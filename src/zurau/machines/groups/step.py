"""What one decision has at hand: the time, the settings, the timers, and the answers gathered so far.

Timers are kept in one heap for all groups of a machine. A heartbeat moves its member's timer, and there are many
heartbeats, so moving a timer to a later time only notes the new time; the entry in the heap is put right when it
comes up. An idle group costs nothing, a beating one a dictionary write.
"""

from __future__ import annotations

import heapq
from enum import IntEnum, auto
from typing import Any, NamedTuple

import msgspec

from zurau.errors import Refused
from zurau.machines.groups.settings import GroupSettings
from zurau.machines.machine import Decision, RequestId, StateRecord
from zurau.wire.kafka.error_codes import ErrorCode


class TimerKind(IntEnum):
    #: A member that was not heard of for its session timeout is gone.
    SESSION = auto()
    #: An id was handed out and its owner did not join with it.
    PENDING_MEMBER = auto()
    #: The join barrier: whoever has not joined by then is left behind.
    JOIN_BARRIER = auto()
    #: Whoever has not asked for its assignment by then is removed.
    SYNC_BARRIER = auto()
    #: Look for offsets that nobody needs any more.
    SWEEP = auto()


class Timer(NamedTuple):
    kind: TimerKind
    group_id: str = ""
    member_id: str = ""


class Deadlines:
    """Timers by name; setting one again moves it."""

    __slots__ = ("_at_ms", "_heap", "_pushes", "_queued_ms")

    def __init__(self) -> None:
        self._at_ms: dict[Timer, int] = {}
        #: Where the live entry of a timer sits in the heap. Invariant: never later than its deadline.
        self._queued_ms: dict[Timer, int] = {}
        #: Entries compare by time, then by age, so that equal times come up in the order of setting.
        self._heap: list[tuple[int, int, Timer]] = []
        self._pushes = 0

    def __contains__(self, timer: Timer) -> bool:
        return timer in self._at_ms

    def set(self, timer: Timer, at_ms: int) -> None:
        self._at_ms[timer] = at_ms
        queued_ms = self._queued_ms.get(timer)
        if queued_ms is None or at_ms < queued_ms:
            self._push(timer, at_ms)

    def cancel(self, timer: Timer) -> None:
        self._at_ms.pop(timer, None)

    def next_ms(self) -> int | None:
        """When the earliest timer fires."""
        while self._heap:
            queued_ms, _, timer = self._heap[0]
            at_ms = self._at_ms.get(timer)
            if at_ms == queued_ms:
                return queued_ms
            heapq.heappop(self._heap)
            if self._queued_ms.get(timer) == queued_ms:
                del self._queued_ms[timer]
                if at_ms is not None:
                    self._push(timer, at_ms)
        return None

    def pop_due(self, now_ms: int) -> Timer | None:
        """The earliest timer if its time has come; it is no longer set then."""
        at_ms = self.next_ms()
        if at_ms is None or at_ms > now_ms:
            return None
        _, _, timer = heapq.heappop(self._heap)
        self._queued_ms.pop(timer, None)
        del self._at_ms[timer]
        return timer

    def _push(self, timer: Timer, at_ms: int) -> None:
        self._queued_ms[timer] = at_ms
        self._pushes += 1
        heapq.heappush(self._heap, (at_ms, self._pushes, timer))


class Step(msgspec.Struct):
    """One decision in the making."""

    now_ms: int
    settings: GroupSettings
    deadlines: Deadlines
    records: list[StateRecord] = msgspec.field(default_factory=list)
    replies: list[tuple[RequestId, Any]] = msgspec.field(default_factory=list)

    def answer(self, request_id: RequestId, reply: object) -> None:
        self.replies.append((request_id, reply))

    def refuse(self, request_id: RequestId, code: ErrorCode, message: str | None = None) -> None:
        self.replies.append((request_id, Refused(code, message)))

    def start_timer(self, delay_ms: int, kind: TimerKind, group_id: str = "", member_id: str = "") -> None:
        self.deadlines.set(Timer(kind, group_id, member_id), self.now_ms + delay_ms)

    def stop_timer(self, kind: TimerKind, group_id: str, member_id: str = "") -> None:
        self.deadlines.cancel(Timer(kind, group_id, member_id))

    def decision(self) -> Decision:
        return Decision(self.records, self.replies)
