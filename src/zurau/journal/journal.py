"""The journal of a running broker.

The loop says what became true; the flush thread writes it down. Positions wait for each other: all that was said in a
tenth of a second goes in one frame and one flush. What a replica promises (its vote, its epoch marks, its voters, its
name) does not wait, and whoever asks while a flush runs shares the next one (group commit).

When the file has grown it is replaced by one frame that says everything anew. So it is when something is taken back,
so that a torn end never hides that, and after any failure: a file whose flush failed is not trusted again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from zurau.epochs import EpochMark, Position
from zurau.errors import DiskFault
from zurau.ids import Epoch, Offset
from zurau.journal.frames import encode_frame
from zurau.journal.reading import FILE, Reading, read_journal
from zurau.journal.records import Known, LogId, Record, ReplicaFacts, encode_records
from zurau.log.last_known import LastKnown
from zurau.pending import Pending
from zurau.ports import Disk, File, Timer, World
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.membership import VoterChange
from zurau.settings import MIB

log = logging.getLogger("zurau.journal")

#: How long positions wait to be written down together.
WRITE_AFTER_MS = 100
#: How long to wait after a failure: the disk may have room again.
RETRY_AFTER_MS = 1000
#: The file is replaced by a short one when it is larger than this, and than some times what it was at first.
REWRITE_BYTES = 1 * MIB
REWRITE_GROWTH = 4


class Journal:
    """See the module. Reading happens at once; nothing is written before `begin`."""

    def __init__(self, world: World) -> None:
        self._disk = world.disk
        self._clock = world.clock
        self._flusher = world.flusher
        self._boot_id = world.boot_id
        #: Why it could not be written when that was last tried; None if it could.
        self.fault: DiskFault | None = None
        #: Done when it could not be written for the first time.
        self.failed: Pending[None] = Pending()
        #: Whose positions, and whose promises, are to be written down, each once.
        self._moved: dict[LogId, None] = {}
        self._promised: dict[LogId, None] = {}
        #: Told when the next write is done.
        self._waiting: list[Pending[None]] = []
        self._timer: Timer | None = None
        self._is_writing = False
        self._must_rewrite = False
        self._file = _JournalFile(world.disk)
        reading = read_journal(world.disk)
        #: Whether there was one: releases before this file did not write any.
        self.existed = reading is not None
        self._known, self.damage = reading or Reading(Known(), [])
        for place in self.damage:
            log.error(
                "%s. It said how far each log was flushed, and that is lost. So this start may take damage at the end "
                "of a log for a write that a crash cut short, and cut it off. A new journal is written",
                place,
            )
        self._before = self._known.closed, self._is_same_boot()

    # What is known from before this start

    @property
    def start_count(self) -> int:
        return self._known.start_count

    @property
    def logs(self) -> Iterable[LogId]:
        """Of which it knows a position."""
        return list(self._known.replicas)

    def has_flushed(self, name: LogId) -> bool:
        """Whether there ever were records in this log."""
        facts = self._known.replicas.get(name)
        return facts is not None and facts.flushed.offset > 0

    def last_known(self, name: LogId) -> LastKnown | None:
        """What it says of a log; None if there was no journal."""
        if not self.existed:
            return None
        closed, is_same_boot = self._before
        facts = self._known.replicas.get(name) or ReplicaFacts()
        return LastKnown(
            facts.flushed.offset,
            closed.get(name),
            kept_unflushed=is_same_boot and name not in self._known.unrecovered,
            marks=facts.marks,
        )

    def forget_ends(self) -> None:
        """Another release, which keeps no journal, has run since: where it left the logs is not known."""
        self._before = {}, self._before[1]

    # What becomes true

    def notes_of(self, name: LogId) -> LogNotes:
        return LogNotes(self, name)

    def facts(self, name: LogId) -> ReplicaFacts:
        return self._known.facts(name)

    def begin(self) -> None:
        """The broker starts: written down, durably, before anything else is. Blocks."""
        self._known.start_count += 1
        self._known.closed = {}
        self._file.rewrite(self._known.records())

    def recovered(self, excepted: Iterable[LogId]) -> None:
        """All logs are open, except some: what is written from now on is there until the machine goes down."""
        unrecovered = set(excepted)
        if (self._boot_id, unrecovered) != (self._known.boot_id, self._known.unrecovered):
            self._known.boot_id, self._known.unrecovered = self._boot_id, unrecovered
            self._must_rewrite = True
            self._write_soon()

    def flushed(self, name: LogId, position: Position, high_watermark: Offset = 0) -> None:
        """Everything up to `position` is safe in this log, and below the high watermark it is committed too."""
        facts = self._known.facts(name)
        has_moved = False
        if position > facts.flushed:
            facts.flushed, has_moved = position, True
        if high_watermark > facts.high_watermark:
            facts.high_watermark, has_moved = high_watermark, True
        if has_moved:
            self._moved[name] = None
            if self._timer is None and not self._is_writing:
                self._write_soon()

    def begin_anew(self, name: LogId, directory: str) -> None:
        """The replica is somebody else from now on, and has promised nothing. Written with what is written next, before
        it promises anything."""
        self._known.replicas[name] = ReplicaFacts(directory=directory)
        self._must_rewrite = True

    def flush_failed(self, name: LogId) -> None:
        """What was written to this log since its last flush may be gone, though the machine has not restarted."""
        if name not in self._known.unrecovered:
            self._known.unrecovered.add(name)
            self._must_rewrite = True
            self._write_soon()

    def lower(self, name: LogId, point: Position) -> Pending[None]:
        """A log is about to be truncated there: do that when this is done."""
        facts = self._known.facts(name)
        facts.flushed = Position(min(facts.flushed.epoch, point.epoch), min(facts.flushed.offset, point.offset))
        facts.high_watermark = min(facts.high_watermark, point.offset)
        facts.marks = tuple(
            mark for mark in facts.marks if mark.epoch <= point.epoch and mark.start_offset <= point.offset
        )
        facts.voters = tuple(change for change in facts.voters if change.offset < point.offset)
        self._must_rewrite = True
        return self.save(name)

    def save(self, name: LogId) -> Pending[None]:
        """Done when what is known of this replica is safe. Tried until it works, for as long as the disk refuses."""
        saved: Pending[None] = Pending()
        self._promised[name] = None
        self._waiting.append(saved)
        if not self._is_writing and self.fault is None:
            self._write()
        return saved

    def forget(self, names: Iterable[LogId]) -> None:
        """These logs are gone for good. They leave the file when it is replaced. Ones of the same name, if a partition
        comes back to this broker, are others, and nothing is known of them."""
        closed, _ = self._before
        for name in names:
            closed.pop(name, None)
            self._known.replicas.pop(name, None)
            self._moved.pop(name, None)
            self._promised.pop(name, None)

    def close(self, ended: Mapping[LogId, Offset]) -> None:
        """The broker stops, and left these logs in good order. Blocks; the flush thread has stopped."""
        if self._timer is not None:
            self._timer.cancel()
        self._known.closed = dict(ended)
        for name, offset in ended.items():
            facts = self._known.facts(name)
            facts.flushed = Position(facts.flushed.epoch, offset)
            facts.marks = ()  # they are in its own file now
        self._file.rewrite(self._known.records())
        self._file.close()

    # Writing

    def _write_soon(self, delay_ms: int | None = None) -> None:
        if self._timer is None:
            self._timer = self._clock.call_later(WRITE_AFTER_MS if delay_ms is None else delay_ms, self._write_due)

    def _write_due(self) -> None:
        self._timer = None
        if not self._is_writing:
            self._write()

    def _write(self) -> None:
        """Have the flush thread write what is new. It does one thing after the other, in the order of asking."""
        self._is_writing = True
        waiting, self._waiting = self._waiting, []
        self._flusher.flush(self._work()).then(lambda outcome: self._written(outcome, waiting))

    def _work(self) -> Callable[[], None]:
        moved, self._moved = self._moved, {}
        promised, self._promised = self._promised, {}
        known = self._known
        if self._must_rewrite or self._file.has_grown:
            self._must_rewrite = False
            records = known.records()
            return lambda: self._file.rewrite(records)
        said: list[Record] = [known.replicas[name].said(name) for name in promised if name in known.replicas]
        if moved:
            said.append(known.positions(moved))
        return lambda: self._file.append(said)

    def _written(self, outcome: Pending[None], waiting: list[Pending[None]]) -> None:
        self._is_writing = False
        try:
            outcome.result()
        except DiskFault as fault:
            if self.fault is None:
                log.warning("how far logs are flushed cannot be noted, and will be tried again: %s", fault)
            self.fault = fault
            self.failed.resolve(None)
            self._must_rewrite = True  # with everything that this write should have said
            self._waiting = waiting + self._waiting
            self._write_soon(RETRY_AFTER_MS)
            return
        if self.fault is not None:
            log.info("how far logs are flushed is noted again")
            self.fault = None
        for saved in waiting:
            saved.resolve(None)
        if self._waiting and not self._is_writing:
            self._write()
        elif self._moved or self._must_rewrite:
            self._write_soon()

    def _is_same_boot(self) -> bool:
        return bool(self._boot_id) and self._known.boot_id == self._boot_id


class LogNotes:
    """The journal as one log and its replica see it."""

    __slots__ = ("_journal", "_name")

    def __init__(self, journal: Journal, name: LogId) -> None:
        self._journal = journal
        self._name = name

    @property
    def facts(self) -> ReplicaFacts:
        """What it says. Changed only here."""
        return self._journal.facts(self._name)

    def flushed(self, position: Position, high_watermark: Offset = 0) -> None:
        self._journal.flushed(self._name, position, high_watermark)

    def flush_failed(self) -> None:
        self._journal.flush_failed(self._name)

    def lower(self, point: Position) -> Pending[None]:
        return self._journal.lower(self._name, point)

    def save_vote(self, epoch: Epoch, voted_for: ReplicaId | None) -> Pending[None]:
        facts = self.facts
        facts.epoch, facts.voted_for = epoch, voted_for
        return self._journal.save(self._name)

    def save_marks(self, marks: Iterable[EpochMark]) -> Pending[None]:
        """Those that the log's own file does not have."""
        self.facts.marks = tuple(marks)
        return self._journal.save(self._name)

    def save_voters(self, voters: Iterable[VoterChange]) -> Pending[None]:
        self.facts.voters = tuple(voters)
        return self._journal.save(self._name)


class _JournalFile:
    """The file itself. Used by one thread at a time."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._file: File | None = None
        self._first_bytes = 0

    @property
    def has_grown(self) -> bool:
        size = self._file.size if self._file is not None else 0
        return size > max(REWRITE_BYTES, REWRITE_GROWTH * self._first_bytes)

    def append(self, records: list[Record]) -> None:
        if self._file is None:
            self._file = self._disk.open(FILE, create=False)
        self._file.append([encode_frame(encode_records(records))])
        self._file.flush()

    def rewrite(self, records: list[Record]) -> None:
        frame = encode_frame(encode_records(records))
        self._disk.replace_file(FILE, frame)
        self._first_bytes = len(frame)
        self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
