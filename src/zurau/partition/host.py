"""Runs a machine on a partition.

A question goes in by `ask`. What the machine decides is appended to the log and applied at once; the replies are
released when the high watermark has passed everything applied so far. A reply without records of its own waits too,
so nobody is told of something that could still be lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from zurau.errors import CorruptData, ProtocolViolation, Refused
from zurau.ids import Offset
from zurau.machines.machine import Decision, Machine, StateRecord, Ticket
from zurau.partition.partition import Partition
from zurau.pending import Pending
from zurau.ports import Clock, Timer
from zurau.records.batch import BatchHeader, check_crc, iter_batches
from zurau.records.builder import NewRecord, build_batch
from zurau.records.record import iter_records
from zurau.settings import MIB

log = logging.getLogger("zurau.host")

Command = TypeVar("Command")

#: Read at once when a log is replayed. Any value is right: a batch comes whole.
READ_BYTES = 1 * MIB


class MachineHost(Generic[Command]):
    """One machine, its partition, and the questions that wait for an answer."""

    def __init__(self, partition: Partition, machine: Machine[Command], clock: Clock) -> None:
        self.partition = partition
        self.machine = machine
        self._clock = clock
        # Machines measure intervals with the time they are given, so it must not jump: the wall clock, once, and
        # from there on the monotonic one.
        self._wall_anchor_ms = clock.now_ms() - clock.monotonic_ms()
        self._waiting: dict[Ticket, Pending[Any]] = {}
        self._last_ticket = 0
        self._applied: Offset = partition.log.start_offset
        #: Stretches of offsets that the log does not hold (any more): the first one, and the one after the last.
        self.gaps: list[tuple[Offset, Offset]] = [(0, self._applied)] if self._applied else []
        self._timer: Timer | None = None
        self._timer_at_ms: int | None = None

    def load(self) -> None:
        """Replay the whole log into the machine. Raises `CorruptData` rather than to replay something else."""
        stored = self.partition.log
        while self._applied < stored.end_offset:
            try:
                chunk = stored.read(self._applied, READ_BYTES, stored.end_offset, may_block=True)
            except CorruptData as damage:
                raise self._damaged(self._applied, damage) from damage
            if not chunk:  # nothing is left behind the last batch
                self.gaps.append((self._applied, stored.end_offset))
                self._applied = stored.end_offset
            self._apply_batches(memoryview(chunk))
        self.machine.loaded(self._now_ms())
        self._watch_deadline()

    def ask(self, command: Command) -> Pending[Any]:
        """The machine's reply; a `Refused` reply is raised to whoever awaits it."""
        self._last_ticket += 1
        ticket = Ticket(self._last_ticket)
        pending = self._waiting[ticket] = Pending()
        self._carry_out(self.machine.decide(ticket, command, self._now_ms()))
        return pending

    def close(self, error: Callable[[], Refused]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._waiting = self._waiting, {}
        for pending in waiting.values():
            pending.fail(error())

    def _now_ms(self) -> int:
        return int(self._wall_anchor_ms + self._clock.monotonic_ms())

    def _carry_out(self, decision: Decision) -> None:
        try:
            if decision.records:
                self._write(decision)
        except Refused as refused:
            # Not written, so not true: everyone who was to be told otherwise is told this instead.
            for ticket, _ in decision.replies:
                self._waiting.pop(ticket).fail(refused)
        else:
            if decision.replies:
                self._release_when_committed(decision)
        self._watch_deadline()

    def _write(self, decision: Decision) -> None:
        now_ms = self._clock.now_ms()
        batch = build_batch([NewRecord(key=r.key, value=r.value, timestamp=now_ms) for r in decision.records])
        self._applied = self.partition.append_own(batch)
        for record in decision.records:
            self.machine.apply(record)

    def _release_when_committed(self, decision: Decision) -> None:
        replies = [(self._waiting.pop(ticket), reply) for ticket, reply in decision.replies]

        def release(committed: Pending[None]) -> None:
            for pending, reply in replies:
                _deliver(pending, reply, committed)

        self.partition.wait_high_watermark(self._applied).then(release)

    def _apply_batches(self, chunk: memoryview) -> None:
        for header, batch in iter_batches(chunk):
            if header.base_offset > self._applied:
                self.gaps.append((self._applied, header.base_offset))
            self._apply_batch(batch, header)
            self._applied = header.next_offset

    def _apply_batch(self, batch: memoryview, header: BatchHeader) -> None:
        try:
            if not check_crc(batch, header):
                raise CorruptData("its checksum is wrong")
            for record in iter_records(batch):
                self._apply_stored(StateRecord(record.key, record.value), record.offset)
        except (CorruptData, ProtocolViolation, LookupError) as fault:
            raise self._damaged(header.base_offset, fault) from fault

    def _damaged(self, offset: Offset, fault: Exception) -> CorruptData:
        return CorruptData(
            f"{self.partition.name} is damaged at offset {offset} ({fault}); look at it with `zurau log check`, and "
            "restore its directory from a copy or give up what is damaged with `zurau log repair`"
        )

    def _apply_stored(self, record: StateRecord, offset: Offset) -> None:
        try:
            self.machine.apply(record)
        except LookupError:
            if not self.gaps:
                raise
            # The log was repaired, and this builds on what was given up.
            log.warning("%s: the record at offset %d means nothing without a lost one", self.partition.name, offset)

    def _watch_deadline(self) -> None:
        """Have a timer that fires no later than the machine's next deadline.

        Deadlines mostly move away (each heartbeat puts one off), so a timer that fires too early is left alone: it
        looks again when it fires.
        """
        deadline_ms = self.machine.next_deadline_ms()
        if deadline_ms is None or (self._timer_at_ms is not None and self._timer_at_ms <= deadline_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at_ms = deadline_ms
        self._timer = self._clock.call_later(max(0, deadline_ms - self._now_ms()), self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = self._timer_at_ms = None
        deadline_ms = self.machine.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= self._now_ms():
            self._carry_out(self.machine.time_passed(self._now_ms()))
        else:
            self._watch_deadline()


def _deliver(pending: Pending[Any], reply: Any, committed: Pending[None]) -> None:
    try:
        committed.result()
    except Refused as refused:
        pending.fail(refused)
        return
    if isinstance(reply, Refused):
        pending.fail(reply)
    else:
        pending.resolve(reply)
