"""Carries out what a replica core says, on a real log.

The core is told what happened and says effects; their order is the contract (`replica/core/effects.py`). So they stand
in one line per replica. Most are done at once. One that has to wait for a disk (a vote, a truncation) holds up those
behind it until it is done, and nobody else: the work is in the background or in the journal.

A leader's own records are in the log before the core hears of them (`RecordsWritten`): a disk without room then costs
one refused batch. Other appends that the disk refuses are tried again until it takes them, and what stands behind them
waits. Anything else that fails leaves the core ahead of its log, and ends this replica: it is started again from its
disk when the broker is. So does a broken invariant. Other replicas go on.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from msgspec.structs import replace

from zurau.alarm import Alarm
from zurau.epochs import EpochMark, Position
from zurau.errors import CorruptData, DiskFault, FlushFailed, OffsetOutOfRange
from zurau.ids import Offset
from zurau.journal.journal import LogNotes
from zurau.log.log import Log
from zurau.partition.flushing import RETRY_FLUSH_MS, LogFlushing
from zurau.partition.outbox import Outbox
from zurau.partition.owner import Owner
from zurau.partition.runs import Write, split_runs, writes_of
from zurau.partition.voters import encode_voters
from zurau.pending import Pending, done
from zurau.ports import World, WouldBlock
from zurau.records.batch import stamp
from zurau.replica.core.effects import (
    AdvanceHighWatermark,
    AdvanceReplicated,
    AdvanceStart,
    AlterPartition,
    Append,
    Effect,
    FetchSnapshot,
    LeadershipEstablished,
    ReadAndSend,
    Refuse,
    RestartLog,
    RoleChanged,
    SaveVote,
    Send,
    StartFlush,
    Truncate,
)
from zurau.replica.core.events import Event, Flushed, TimePassed
from zurau.replica.core.identity import PartitionId
from zurau.replica.core.items import Batch
from zurau.replica.core.membership import Membership
from zurau.replica.core.replica import ReplicaCore
from zurau.replica.core.roles import Role
from zurau.replica.core.settings import NEVER_MS

log = logging.getLogger("zurau.replica")

_DONE = done(None)


class _MoveStart(NamedTuple):
    """The leader's own: it stands in the line with what the core says."""

    offset: Offset
    moved: Pending[None]


class Shell:
    """One replica: its core, its log, and the effects that are not carried out yet."""

    __slots__ = (
        "_alarm", "_background", "_clock", "_effects", "_is_busy", "_is_held_up", "_notes", "_observer", "_outbox",
        "_owner", "_truncation", "_workers", "core", "flushing", "is_stopped", "log", "partition",
    )  # fmt: skip

    def __init__(
        self,
        partition: PartitionId,
        core: ReplicaCore,
        log: Log,
        *,
        notes: LogNotes | None,
        world: World,
        outbox: Outbox,
        owner: Owner,
    ) -> None:
        self.partition = partition
        self.core = core
        self.log = log
        self._notes = notes
        self._clock = world.clock
        self._workers = world.workers
        self._background = world.background
        self._observer = world.observer
        self._outbox = outbox
        self._owner = owner
        self.flushing = LogFlushing(log, notes, world.clock, world.flusher, self)
        #: What is to be done, in this order.
        self._effects: deque[Effect | _MoveStart] = deque()
        self._is_busy = False
        #: The first of them waits for a disk.
        self._is_held_up = False
        #: A truncation that waits until the flush that is under way has ended.
        self._truncation: Callable[[], None] | None = None
        self._alarm = Alarm(world.clock, self._woken)
        self.is_stopped = False

    @property
    def is_settled(self) -> bool:
        """Everything that the core has said is done: what it believes of its log is true."""
        return not self._effects and not self._is_held_up

    # Hearing

    def start(self) -> None:
        self.tell(TimePassed())

    def tell(self, event: Event) -> None:
        if self.is_stopped:
            return
        try:
            effects = self.core.step(event, int(self._clock.monotonic_ms()))
            if self._observer is not None:
                self._observer.stepped(self.partition, self.core, event, effects)
            self._effects.extend(effects)
            if self._effects and not self._is_busy:
                self._carry_out_all()
            deadline_ms = self.core.deadline_ms
            if deadline_ms < NEVER_MS and deadline_ms < self._alarm.at_ms:
                self._alarm.no_later_than(deadline_ms)
        except Exception as error:  # noqa: BLE001 - whatever it is, the core is ahead of its log now
            self._broke(error)

    def stop(self) -> None:
        """Nothing more is heard or said."""
        self.is_stopped = True
        self.flushing.close()
        effects, self._effects = self._effects, deque()
        for effect in effects:
            if isinstance(effect, _MoveStart):
                effect.moved.fail(_is_stopped(self.log))
        self._alarm.cancel()

    def _broke(self, error: BaseException) -> None:
        """The replica ends here. Its disk is as it was; a start from there is safe."""
        if isinstance(error, CorruptData):
            log.error(
                "the replica of %s (%s) is damaged, and is stopped so that others lead: %s. Stop the broker in good "
                "order and start it again: it then fetches the partition anew", self.log.directory, self.core.id, error,
            )  # fmt: skip
        else:
            log.critical(
                "the replica of %s (%s) broke an invariant or could not carry out what it had decided, and is stopped: "
                "%s. Clients get a storage error. Nothing acknowledged is lost by this: restart the broker to open it "
                "again, and please report this with the lines that follow",
                self.log.directory, self.core.id, error, exc_info=error,
            )  # fmt: skip
        self._end(error if isinstance(error, DiskFault) else DiskFault(f"its replica is stopped: {error!r}"))

    def _end(self, fault: DiskFault) -> None:
        self.stop()
        self._outbox.failed(self.partition)
        self._owner.storage_fault(fault if isinstance(fault, FlushFailed) else FlushFailed(str(fault)))

    # Time

    def _woken(self) -> None:
        if self.core.deadline_ms <= self._clock.monotonic_ms():
            self.tell(TimePassed())
        elif self.core.deadline_ms < NEVER_MS:
            self._alarm.no_later_than(self.core.deadline_ms)

    # Doing

    def _carry_out_all(self) -> None:
        """In order, as far as it goes. Somebody who is told may have more to say: that stands behind."""
        self._is_busy = True
        try:
            while self._effects and not self._is_held_up:  # `stop` leaves none
                effect = self._effects.popleft()
                _WORK[type(effect)](self, effect)
        finally:
            self._is_busy = False

    def _hold_up(self, work: Pending[Any]) -> None:
        """What comes next waits for this."""
        self._is_held_up = True
        work.then(self._go_on)

    def _go_on(self, outcome: Pending[Any]) -> None:
        if self.is_stopped:
            return
        self._is_held_up = False
        try:
            outcome.result()
            if not self._is_busy:
                self._carry_out_all()
            self.flushing.consider()
        except Exception as error:  # noqa: BLE001 - as in `tell`
            self._broke(error)

    def _save_vote(self, effect: SaveVote) -> None:
        if self._notes is not None:
            self._hold_up(self._notes.save_vote(effect.epoch, effect.voted_for))

    def _append(self, effect: Append) -> None:
        """There may be no room for it, whatever was measured before. What comes next waits until it is written, so
        nobody hears of it too early."""
        writes = writes_of(effect.items)
        for write in writes:
            try:
                self._write(write)
            except FlushFailed:
                raise
            except DiskFault as fault:
                self._hold_up(self._append_later(effect, chain([write], writes), fault))
                return
        if self._notes is not None and _has_voters(effect):
            self._hold_up(self._save_voters())

    def _append_later(self, effect: Append, writes: Iterator[Write], fault: DiskFault) -> Pending[None]:
        """Try again until everything is written. A write that failed has changed nothing."""
        appended: Pending[None] = Pending()
        rest = deque(writes)

        def attempt() -> None:
            if self.is_stopped:
                return
            try:
                while rest:
                    self._write(rest[0])
                    rest.popleft()
            except Exception as error:  # noqa: BLE001 - as in `tell`
                if isinstance(error, DiskFault) and not isinstance(error, FlushFailed):
                    refused(error)
                else:
                    appended.fail(error)
                return
            self._owner.storage_fault(None)
            saved = self._save_voters() if self._notes is not None and _has_voters(effect) else _DONE
            saved.then(lambda outcome: _copy(outcome, appended))

        def refused(fault: DiskFault) -> None:
            self._owner.storage_fault(fault)
            self._clock.call_later(RETRY_FLUSH_MS, attempt)

        refused(fault)
        return appended

    def _save_voters(self) -> Pending[None]:
        """Known to the journal before the change can count: nobody looks for it in the log at a start."""
        assert self._notes is not None
        return self._notes.save_voters(self.core.membership.history)

    def _write(self, write: Write) -> None:
        if isinstance(write, EpochMark):
            self.log.mark(write)
        elif isinstance(write, Batch):
            assert write.voters is not None
            batch = encode_voters(write.voters, self._clock.now_ms())
            self.log.append(batch, stamp(batch, write.base_offset, write.epoch))
        else:
            header, stored = write
            self.log.append(stored, header)
            self._owner.replicated(header)

    def _start_flush(self, effect: StartFlush) -> None:
        self.flushing.want(effect.number)

    def _truncate(self, effect: Truncate) -> None:
        self._exclusively(effect.point, partial(self.log.truncate, effect.point))

    def _restart(self, effect: RestartLog) -> None:
        mark = effect.point.mark
        if self._notes is not None and effect.point.voters:
            # Before the log is another one: with these, an older log does no harm.
            self._notes.save_voters(Membership(effect.point.voters).history)
        self._exclusively(Position(mark.epoch, 0), partial(self.log.restart, mark))

    def _exclusively(self, lowered: Position, work: Callable[[], None]) -> None:
        """Shorten the log, in the background, when no flush is under way and the journal has no more than is left."""
        shortened: Pending[None] = Pending()

        def shorten() -> object:
            work()
            return self._owner.recover_producers()

        def begin() -> None:
            self._truncation = None
            lowering = self._notes.lower(lowered) if self._notes is not None else _DONE
            lowering.then(lambda _: self._background.run(shorten).then(ended))

        def ended(outcome: Pending[object]) -> None:
            if outcome.error is not None:
                shortened.fail(outcome.error)
            else:
                self._owner.truncated(outcome.result())
                shortened.resolve(None)

        self._hold_up(shortened)
        if self.flushing.is_under_way:
            self._truncation = begin
        else:
            begin()

    def _advance_start(self, effect: AdvanceStart) -> None:
        """There may be no room to write it down. Nobody waits for it, so it is tried again until there is."""
        advanced: Pending[None] = Pending()

        def attempt() -> None:
            if not self.is_stopped:
                self._write_start(effect.offset).then(ended)

        def ended(outcome: Pending[None]) -> None:
            if isinstance(outcome.error, DiskFault):
                self._clock.call_later(RETRY_FLUSH_MS, attempt)
            else:
                _copy(outcome, advanced)

        self._hold_up(advanced)
        attempt()

    def move_start(self, offset: Offset) -> Pending[None]:
        """Forget what is before `offset`. Fails with nothing changed if that cannot be written down."""
        moved: Pending[None] = Pending()
        if self.is_stopped:
            moved.fail(_is_stopped(self.log))
            return moved
        self._effects.append(_MoveStart(offset, moved))
        if not self._is_busy:
            self._carry_out_all()
        return moved

    def _move_start(self, move: _MoveStart) -> None:
        """What comes next waits, whether it goes well or not: a truncation must not come in between."""
        tried: Pending[None] = Pending()

        def ended(outcome: Pending[None]) -> None:
            tried.resolve(None)
            _copy(outcome, move.moved)

        self._hold_up(tried)
        self._write_start(move.offset).then(ended)

    def _write_start(self, offset: Offset) -> Pending[None]:
        """In the background: it takes two flushes."""
        if offset <= self.log.start_offset:
            return _DONE
        written: Pending[None] = Pending()

        def ended(outcome: Pending[None]) -> None:
            if outcome.error is not None:
                self.log.start_not_advanced()
                written.fail(outcome.error)
            else:
                self.log.start_advanced()
                written.resolve(None)

        self._background.run(self.log.begin_advance_start(offset)).then(ended)
        return written

    def _send(self, effect: Send) -> None:
        self._outbox.send(effect.to, self.partition, effect.message)

    def _read_and_send(self, effect: ReadAndSend) -> None:
        if self._outbox.holds_back(effect.to, self.partition, effect.message):
            return
        read = partial(self.log.read, effect.from_offset, effect.max_bytes, effect.upto_offset)
        try:
            self._send_read(effect, read(may_block=False))
        except WouldBlock:
            self._workers.run(partial(read, may_block=True)).then(partial(self._read_late, effect))
        except OffsetOutOfRange:
            self._outbox.evict(self.partition, effect.to)

    def _read_late(self, effect: ReadAndSend, outcome: Pending[bytes]) -> None:
        """It may have been deposed meanwhile."""
        if self.is_stopped:
            return
        try:
            stored = outcome.result()
            if self.core.role is Role.LEADER and self.core.epoch == effect.message.epoch:
                self._send_read(effect, stored)
            else:
                self._outbox.evict(self.partition, effect.to)
        except OffsetOutOfRange:
            self._outbox.evict(self.partition, effect.to)
        except DiskFault as fault:
            self._broke(fault)

    def _send_read(self, effect: ReadAndSend, stored: bytes) -> None:
        """A disk that gives back something else than was written is no disk to lead with."""
        self._outbox.send(effect.to, self.partition, replace(effect.message, batches=split_runs(stored)))

    def _fetch_snapshot(self, effect: FetchSnapshot) -> None:
        self._outbox.fetch_snapshot(self.partition, effect.leader, effect.point)

    def _advance_high_watermark(self, effect: AdvanceHighWatermark) -> None:
        self._owner.high_watermark_moved(effect.high_watermark)

    def _advance_replicated(self, effect: AdvanceReplicated) -> None:
        self._owner.replicated_moved(effect.offset)

    def _established(self, _: LeadershipEstablished) -> None:
        self._owner.leadership_established()

    def _role_changed(self, effect: RoleChanged) -> None:
        self._outbox.role_changed(self.partition, effect.role, effect.epoch)
        self._owner.role_changed(effect.role, effect.epoch, effect.leader)

    def _alter_partition(self, effect: AlterPartition) -> None:
        self._outbox.alter_partition(self.partition, effect.proposal)

    def _refuse(self, effect: Refuse) -> None:
        log.info("%s: %s", self.log.directory, effect.reason)

    # What the flushes say

    def flushed(self, number: int, upto: Position) -> None:
        if self._notes is not None:
            self._notes.flushed(upto, self.core.safe_high_watermark)
        self._owner.storage_fault(None)
        self.tell(Flushed(number, upto))
        self._owner.flushed_moved(upto.offset)
        if self._truncation is not None:
            self._truncation()

    def flush_failed(self, fault: DiskFault) -> None:
        if isinstance(fault, FlushFailed):
            # The kernel may have dropped what it could not write; asking again would report success.
            if self._notes is not None:
                self._notes.flush_failed()
            self._end(fault)
        else:
            self._owner.storage_fault(fault)

    def cannot_write(self) -> None:
        self._outbox.cannot_write(self.partition)

    def is_awaited(self, offset: Offset) -> bool:
        return self._owner.is_awaited(offset)


def _has_voters(effect: Append) -> bool:
    return any(isinstance(item, Batch) and item.voters for item in effect.items)


def _is_stopped(log: Log) -> DiskFault:
    return DiskFault(f"the replica in {log.directory} is stopped")


_WORK: dict[type, Callable[[Shell, Any], None]] = {
    SaveVote: Shell._save_vote,
    Append: Shell._append,
    Truncate: Shell._truncate,
    AdvanceStart: Shell._advance_start,
    _MoveStart: Shell._move_start,
    StartFlush: Shell._start_flush,
    Send: Shell._send,
    ReadAndSend: Shell._read_and_send,
    FetchSnapshot: Shell._fetch_snapshot,
    RestartLog: Shell._restart,
    AdvanceHighWatermark: Shell._advance_high_watermark,
    AdvanceReplicated: Shell._advance_replicated,
    LeadershipEstablished: Shell._established,
    Refuse: Shell._refuse,
    RoleChanged: Shell._role_changed,
    AlterPartition: Shell._alter_partition,
}


def _copy(outcome: Pending[None], to: Pending[None]) -> None:
    to.fail(outcome.error) if outcome.error is not None else to.resolve(None)
