"""Runs a machine on a partition.

A question goes in by `ask`. What the machine decides is appended to the log and applied at once, so that the next
decision builds on it; the replies are released when the high watermark has passed everything applied so far. A reply
without records of its own waits too, so nobody is told of something that could still be lost. The state of the machine
is therefore the host's alone: it is ahead of what is committed. Whoever wants to look without asking reads the
committed log (see `broker/cluster_view.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from zurau.errors import Refused
from zurau.ids import Offset
from zurau.machines.machine import Decision, Machine, StateRecord, Ticket
from zurau.partition.partition import Partition
from zurau.partition.replay import Replay
from zurau.partition.snapshots import NO_SNAPSHOT, Snapshot
from zurau.pending import Pending
from zurau.ports import Clock, Timer
from zurau.records.builder import NewRecord, build_batch

Command = TypeVar("Command")

#: What a batch and a record take besides keys and values, at most: the header; lengths and deltas.
RECORD_BATCH_OVERHEAD = 61
RECORD_OVERHEAD = 32


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
        self.gaps: list[tuple[Offset, Offset]] = []
        self._timer: Timer | None = None
        self._timer_at_ms: int | None = None

    def load(self, snapshot: Snapshot = NO_SNAPSHOT) -> None:
        """Replay the whole log into the machine. Raises `CorruptData` rather than to replay something else."""
        replay = Replay(self.partition, self.machine.apply)
        replay.restore(snapshot)
        replay.catch_up(self.partition.log.end_offset)
        self._applied, self.gaps = replay.next_offset, replay.gaps
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
        for records in _batches(decision.records, self.partition.log.settings.max_message_bytes):
            batch = build_batch([NewRecord(key=r.key, value=r.value, timestamp=now_ms) for r in records])
            self._applied = self.partition.append_own(batch)
            for record in records:
                self.machine.apply(record)

    def _release_when_committed(self, decision: Decision) -> None:
        replies = [(self._waiting.pop(ticket), reply) for ticket, reply in decision.replies]

        def release(committed: Pending[None]) -> None:
            for pending, reply in replies:
                _deliver(pending, reply, committed)

        self.partition.wait_high_watermark(self._applied).then(release)

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


def _batches(records: Sequence[StateRecord], max_bytes: int) -> Iterator[Sequence[StateRecord]]:
    """The records in as few batches as the topic's limit allows. A larger one has a batch of its own."""
    first, size = 0, RECORD_BATCH_OVERHEAD
    for index, record in enumerate(records):
        record_bytes = len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD
        if index > first and size + record_bytes > max_bytes:
            yield records[first:index]
            first, size = index, RECORD_BATCH_OVERHEAD
        size += record_bytes
    yield records[first:]


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
