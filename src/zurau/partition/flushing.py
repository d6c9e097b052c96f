"""When a log is flushed: at once while somebody waits for it, a little later while nobody does.

The replica core asks for a flush as soon as there is something to flush, and for the next one when that is done. With
`flush=fsync` nothing counts before; with `flush=os` it does, and a flush comes when the topic's settings say so.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from zurau.epochs import Position
from zurau.errors import DiskFault, FlushFailed
from zurau.ids import Offset
from zurau.journal.journal import LogNotes
from zurau.log.log import Log
from zurau.pending import Pending
from zurau.ports import Clock, Flusher, Timer
from zurau.settings import INT64_MAX

#: How long to wait before what could not be stored is tried again: there may be room then.
RETRY_FLUSH_MS = 1000
#: How long a flush is put off while nobody waits for it. acks=1 does not, and would pay for one with each record.
UNAWAITED_FLUSH_MS = 5
#: Segments in one flush: others' flushes come in between.
FLUSHED_AT_ONCE = 8


class FlushListener(Protocol):
    def flushed(self, number: int, upto: Position) -> None: ...

    def flush_failed(self, fault: DiskFault) -> None:
        """It is tried again, unless the fault is a `FlushFailed`: that is final."""

    def is_awaited(self, offset: Offset) -> bool:
        """Whether somebody waits for records below `offset` to be safe."""


class LogFlushing:
    """The flushes of one log. Invariant: at most one is under way."""

    __slots__ = (
        "_clock",
        "_flusher",
        "_listener",
        "_log",
        "_notes",
        "_timer",
        "_wanted",
        "is_closed",
        "is_under_way",
        "writer",
    )

    def __init__(
        self, log: Log, notes: LogNotes | None, clock: Clock, flusher: Flusher, listener: FlushListener
    ) -> None:
        self._log = log
        self._notes = notes
        self._clock = clock
        self._flusher = flusher
        self._listener = listener
        self._timer: Timer | None = None
        #: The number of the flush that the core wants and that is not begun yet.
        self._wanted: int | None = None
        self.is_under_way = False
        self.is_closed = False
        #: Whose write was the last: clients take turns with their flushes.
        self.writer: Hashable = None

    @property
    def is_put_off(self) -> bool:
        """Whether one is wanted that has not begun: what is appended now may be a reason to."""
        return self._wanted is not None and not self.is_under_way

    def want(self, number: int) -> None:
        """The core wants everything that is in the log now to be flushed."""
        self._wanted = number
        self.consider()

    def consider(self) -> None:
        """Begin what is wanted, or see to it that it is begun in time. Cheap: asked after each append."""
        if self._wanted is None or self.is_under_way:
            return
        log = self._log
        settings = log.settings
        if settings.waits_for_flush:
            if log.has_rolled or self._listener.is_awaited(log.end_offset) or log.has_only_new_marks:
                self.begin()
            else:
                self._begin_within(UNAWAITED_FLUSH_MS)
        elif log.needs_flush or log.end_offset - log.flushed_offset >= settings.flush_messages:
            self.begin()
        elif settings.flush_ms < INT64_MAX:
            self._begin_within(settings.flush_ms)

    def begin(self) -> None:
        """Begin what is wanted, if anything; appends that come meanwhile share the next one."""
        if self._wanted is None or self.is_under_way or self.is_closed:
            return
        number, self._wanted = self._wanted, None
        self.is_under_way = True
        upto = self._log.position
        if self._notes is not None and self._log.has_only_new_marks:
            changes = self._log.epochs.change_count
            saved = self._notes.save_marks(self._log.unsaved_marks())
            saved.then(lambda _: self._marks_saved(number, upto, changes))
            return
        work = self._log.begin_flush(FLUSHED_AT_ONCE)
        if work is None:
            assert self._log.flushed_offset >= upto.offset, "a log that takes no more writes is not flushed either"
            begun = self._flusher.flush(_nothing_to_do, self.writer)
        else:
            begun = self._flusher.flush(work, self.writer, work.after_all)
        begun.then(lambda outcome: self._flushed(outcome, number, upto))

    def close(self) -> None:
        self.is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _begin_within(self, delay_ms: int) -> None:
        if self._timer is None:
            self._timer = self._clock.call_later(delay_ms, self._is_due)

    def _is_due(self) -> None:
        self._timer = None
        self.begin()

    def _marks_saved(self, number: int, upto: Position, changes: int) -> None:
        self.is_under_way = False
        if not self.is_closed:
            self._log.marks_noted(changes)
            self._listener.flushed(number, upto)
            self.consider()

    def _flushed(self, outcome: Pending[None], number: int, upto: Position) -> None:
        self.is_under_way = False
        try:
            outcome.result()
        except DiskFault as fault:
            if not self.is_closed:
                self._failed(fault, number)
            return
        log = self._log
        log.flush_done()
        if not self.is_closed:
            if log.flushed_offset < upto.offset:  # of many segments only some were flushed
                upto = Position(log.epochs.epoch_of(log.flushed_offset - 1), log.flushed_offset)
            self._listener.flushed(number, upto)
            self.consider()

    def _failed(self, fault: DiskFault, number: int) -> None:
        if not isinstance(fault, FlushFailed):
            self._log.flush_failed()
            self._wanted = number
            if self._timer is None:
                self._timer = self._clock.call_later(RETRY_FLUSH_MS, self._is_due)
        self._listener.flush_failed(fault)


def _nothing_to_do() -> None:
    """Everything is safe already; that is said in its turn all the same."""
