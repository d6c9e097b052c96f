"""Runs a machine on a partition: leads it, loads it, and resigns with it.

A command goes in by `submit`. What the machine decides is appended to the log and applied at once, so that the next
decision builds on it; the replies are released when the high watermark has passed everything applied so far. A reply
without records of its own waits too, so nobody is told of something that could still be lost. The state of the machine
is therefore the runtime's alone: it is ahead of what is committed. Whoever wants to look without asking reads the
committed log (see `broker/cluster_view.py`).

A machine lives as long as a leadership. When its replica has come to lead and knows what is committed, a fresh one is
made of the log, in the background. When the leadership ends, it goes with all that was decided and not committed, and
whoever waits is told to look elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from zurau.alarm import Alarm
from zurau.errors import DiskFault, OffsetOutOfRange, Refused
from zurau.ids import Offset
from zurau.machines.machine import Command, Decision, Machine, OffsetOf, Reply, RequestId, StateRecord
from zurau.partition.partition import Partition
from zurau.partition.replay import Replay
from zurau.partition.snapshots import NO_SNAPSHOT, Snapshot
from zurau.pending import Pending, start
from zurau.ports import World
from zurau.records.builder import NewRecord, build_batch
from zurau.wire.kafka.error_codes import ErrorCode

AnyMachine = TypeVar("AnyMachine", bound=Machine[Any])

#: What a batch and a record take besides keys and values, at most: the header; lengths and deltas.
RECORD_BATCH_OVERHEAD = 61
RECORD_OVERHEAD = 32


class MachineRuntime(Generic[AnyMachine]):
    """One machine, its partition, and the commands that wait for a reply."""

    def __init__(
        self,
        partition: Partition,
        make_machine: Callable[[], AnyMachine],
        world: World,
        not_here: Callable[[], Refused],
        snapshot: Callable[[], Snapshot] = lambda: NO_SNAPSHOT,
    ) -> None:
        """`not_here`: what clients are told that ask while this replica does not lead, or has not loaded."""
        self.partition = partition
        self._make_machine = make_machine
        self.machine: AnyMachine = make_machine()
        self._clock = world.clock
        self._workers = world.workers
        self._turns = world.turns
        self._not_here = not_here
        self._snapshot = snapshot
        # Machines measure intervals with the time they are given, so it must not jump: the wall clock, once, and
        # from there on the monotonic one.
        self._wall_anchor_ms = self._clock.now_ms() - self._clock.monotonic_ms()
        self._waiting: dict[RequestId, Pending[Any]] = {}
        self._last_request_id = 0
        self._applied: Offset = 0
        #: Stretches of offsets that the log does not hold (any more): the first one, and the one after the last.
        self.gaps: list[tuple[Offset, Offset]] = []
        self._alarm = Alarm(world.clock, self._woken, self._now_ms)
        #: Done when the machine of this leadership is loaded; failed if its log is damaged.
        self.loaded: Pending[None] = Pending()
        self.is_loaded = False
        #: Called with that, for each leadership.
        self.on_loaded: Callable[[Pending[None]], None] = _nobody_waits
        #: Called with each effect that the machine decides, when what it rests on is committed.
        self.on_effect: Callable[[Any], None] = _nobody_acts
        #: Counts leaderships, so that a load that was overtaken is not taken for the present one's.
        self._leadership = 0
        partition.leadership_listener = self

    # Leading and resigning

    def leadership_established(self) -> None:
        """What is committed is known: make the machine of it."""
        self._leadership += 1
        self.loaded.then(self.on_loaded)
        start(self._load(self._leadership)).then(self._load_ended)

    def leadership_lost(self) -> None:
        """Drop what was decided and not committed. Whoever waits is told."""
        self._leadership += 1
        if self.is_loaded:
            self.is_loaded = False
            self.machine, self.gaps = self._make_machine(), []
        if self.loaded.is_done:
            self.loaded = Pending()
        self._stop(self._not_here)

    async def _load(self, leadership: int) -> None:
        try:
            machine, replay = await self._read_back()
        except DiskFault as fault:
            if leadership == self._leadership:
                self.loaded.fail(fault)
            return
        if leadership != self._leadership:
            return
        self.machine, self._applied, self.gaps = machine, replay.next_offset, replay.gaps
        self.is_loaded = True
        self._carry_out(machine.loaded(self._now_ms()))
        self.loaded.resolve(None)

    async def _read_back(self) -> tuple[AnyMachine, Replay]:
        """What the log says. When a newer snapshot takes the place of what is being read, it begins again with that."""
        while True:
            machine = self._make_machine()
            replay = Replay(self.partition, machine.apply)
            replay.restore(self._snapshot())
            with suppress(OffsetOutOfRange):
                while replay.next_offset < self.partition.log.end_offset:
                    # To the end, not to the high watermark: what a leader before this one wrote will be committed too.
                    await replay.catch_up_in_turns(self.partition.log.end_offset, self._workers, self._turns)
                return machine, replay

    def _load_ended(self, outcome: Pending[None]) -> None:
        """Anything else than damage is a defect."""
        if outcome.error is not None:
            self.loaded.fail(outcome.error)

    # Commands

    def submit(self, command: Command[Reply]) -> Pending[Reply]:
        """The machine's reply; a `Refused` reply is raised to whoever awaits it."""
        pending: Pending[Reply] = Pending()
        if not self.is_loaded:
            pending.fail(self._not_here())
            return pending
        self._last_request_id += 1
        request_id = RequestId(self._last_request_id)
        self._waiting[request_id] = pending
        self._carry_out(self.machine.decide(request_id, command, self._now_ms()))
        return pending

    def close(self, error: Callable[[], Refused]) -> None:
        self._leadership += 1
        self.is_loaded = False
        self._not_here = error
        self._stop(error)

    def _stop(self, error: Callable[[], Refused]) -> None:
        self._alarm.cancel()
        waiting, self._waiting = self._waiting, {}
        for pending in waiting.values():
            pending.fail(error())

    def _now_ms(self) -> int:
        return int(self._wall_anchor_ms + self._clock.monotonic_ms())

    def _carry_out(self, decision: Decision) -> None:
        first_offset = self._applied
        try:
            if decision.records:
                first_offset = self._write(decision)
        except Refused as refused:
            # Not written, so not true: everyone who was to be told otherwise is told this instead.
            for request_id, _ in decision.replies:
                waiting = self._waiting.pop(request_id, None)
                if waiting is not None:  # or else leadership ended in between, and it was told then
                    waiting.fail(refused)
        else:
            if decision.replies or decision.effects:
                self._release_when_committed(decision, first_offset)
        self._watch_deadline()

    def _write(self, decision: Decision) -> Offset:
        """Append and apply the records, which follow each other; returns the offset of the first."""
        first_offset = self.partition.log.end_offset
        now_ms, leadership = self._clock.now_ms(), self._leadership
        for records in _batches(decision.records, self.partition.log.settings.max_message_bytes):
            batch = build_batch([NewRecord(key=r.key, value=r.value, timestamp=now_ms) for r in records])
            self._applied = self.partition.append_own(batch)
            if self._leadership != leadership:  # a replica that had slept for long noticed just now
                raise self._not_here()
            for offset, record in enumerate(records, self._applied - len(records)):
                self.machine.apply(record, offset)
        return first_offset

    def _release_when_committed(self, decision: Decision, first_offset: Offset) -> None:
        replies = [
            (self._waiting.pop(request_id), first_offset + reply.record if isinstance(reply, OffsetOf) else reply)
            for request_id, reply in decision.replies
        ]

        def release(committed: Pending[None]) -> None:
            for pending, reply in replies:
                self._deliver(pending, reply, committed)
            if committed.error is None:  # or else whoever leads next decides them again
                for effect in decision.effects:
                    self.on_effect(effect)

        self.partition.wait_committed(self._applied).then(release)

    def _deliver(self, pending: Pending[Any], reply: Any, committed: Pending[None]) -> None:
        try:
            committed.result()
        except Refused as refused:
            # To clients of a machine it is not a partition that has another leader.
            has_moved = refused.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
            pending.fail(self._not_here() if has_moved else refused)
            return
        if isinstance(reply, Refused):
            pending.fail(reply)
        else:
            pending.resolve(reply)

    def _watch_deadline(self) -> None:
        deadline_ms = self.machine.next_deadline_ms()
        if deadline_ms is not None:
            self._alarm.no_later_than(deadline_ms)

    def _woken(self) -> None:
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


def _nobody_acts(effect: Any) -> None:
    """Most machines only answer."""


def _nobody_waits(loaded: Pending[None]) -> None:
    """Most machines are asked only when they answer."""
