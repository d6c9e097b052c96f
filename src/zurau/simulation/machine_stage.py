"""A machine on an invented log: what it decides is applied at once, time passes when told to, and a restart replays.

This is what a machine is tried on where the partition under it does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from zurau.machines.machine import Decision, Machine, OffsetOf, RequestId, StateRecord

Command = TypeVar("Command")

START_MS = 1_700_000_000_000


class MachineStage(Generic[Command]):
    """One machine, its log, its clock, and who waits for an answer."""

    def __init__(self, make_machine: Callable[[], Machine[Command]]) -> None:
        self._make_machine = make_machine
        self.machine = make_machine()
        self.now_ms = START_MS
        self.log: list[StateRecord] = []
        #: Questions without an answer so far.
        self.waiting: dict[RequestId, Command] = {}
        #: Answers that nobody has taken yet, in the order in which they were given.
        self.answers: dict[RequestId, Any] = {}
        self._last_request_id = 0
        self.machine.loaded(self.now_ms)

    def ask(self, command: Command) -> RequestId:
        self._last_request_id += 1
        request_id = RequestId(self._last_request_id)
        self.waiting[request_id] = command
        self._carry_out(self.machine.decide(request_id, command, self.now_ms))
        return request_id

    def advance(self, delay_ms: int) -> None:
        """Let time pass; every deadline on the way is met to the millisecond."""
        until_ms = self.now_ms + delay_ms
        while (deadline_ms := self.machine.next_deadline_ms()) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self._carry_out(self.machine.time_passed(self.now_ms))
        self.now_ms = until_ms

    def restart(self) -> list[RequestId]:
        """A fresh machine takes over from the log. Returns the questions that nobody will answer any more."""
        self.machine = self._make_machine()
        for offset, record in enumerate(self.log):
            self.machine.apply(record, offset)
        self.machine.loaded(self.now_ms)
        lost = list(self.waiting)
        self.waiting.clear()
        return lost

    def _carry_out(self, decision: Decision) -> None:
        first_offset = len(self.log)
        for offset, record in enumerate(decision.records, first_offset):
            self.log.append(record)
            self.machine.apply(record, offset)
        for request_id, reply in decision.replies:
            assert self.waiting.pop(request_id, None) is not None, f"{request_id} was answered before, or never asked"
            self.answers[request_id] = first_offset + reply.record if isinstance(reply, OffsetOf) else reply
