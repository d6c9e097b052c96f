"""What of a log is not safe yet, and how it becomes so.

A flush is begun on the loop, done in a worker, and concluded on the loop. It covers the segments that were rolled since
the last one, the one that is written to, the directory if names in it changed, and the epochs if there are new ones.
Only a failed flush of data is final. What else fails (the file of epochs on a full disk) is left to the next flush.

Indexes follow in two more steps, so that an offset entry on disk proves all that recovery takes from it: when a flush
is concluded, the time entries that point into what it made safe are written; the next flush makes those safe; when it
is concluded, the offset entries are written. So an offset entry says: the log is safe up to here, the time index is
whole up to here, and both are true of all segments before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from zurau.epochs import EpochHistory, EpochMark
from zurau.errors import DiskFault, FlushFailed
from zurau.ids import Epoch, Offset
from zurau.log import epochs as epoch_file
from zurau.log.epochs import encode_epochs
from zurau.log.segment import Segment
from zurau.ports import Disk
from zurau.settings import KIB, MIB

#: Index entries kept in memory for the segment that is written to; more are written out at the next flush.
INDEX_MEMORY_BYTES = 64 * KIB
#: What is written to a segment and not flushed, also where nobody waits for a flush. When it is flushed at last, with a
#: whole gigabyte, everybody else's flushes wait for that; and the system holds up who writes when it has too much.
UNFLUSHED_BYTES_MAX = 64 * MIB
#: Marks of epochs that only the broker's journal has.
NOTED_MARKS_MAX = 4


class _Flush(msgspec.Struct):
    """A flush under way: what will be safe when it is done."""

    end_offset: Offset
    #: Each with how many entries of its time index and its offset index point into what is being flushed.
    segments: list[tuple[Segment, int, int]]
    #: Segments whose time entries are being flushed, with how many offset entries may be written then.
    timed: list[tuple[Segment, int]]
    #: How the epochs are that are written down with it; None if they are not.
    epochs: tuple[int, Epoch] | None


class FlushWork:
    """The blocking part of a flush. Call it, or have the whole disk flushed and call `after_all`."""

    __slots__ = ("_directory_changed", "_epochs", "_flush", "_flushing")

    def __init__(self, flushing: Flushing, flush: _Flush, epochs: bytes | None, *, directory_changed: bool) -> None:
        self._flushing = flushing
        self._flush = flush
        self._epochs = epochs
        self._directory_changed = directory_changed

    def __call__(self) -> None:
        try:
            self._flushing.make_safe(self._flush, self._epochs, directory_changed=self._directory_changed)
        except FlushFailed as fault:
            self._flushing.fault = fault
            raise

    def after_all(self, fault: FlushFailed | None) -> None:
        """Everything was flushed since the flush began, or that failed: who knows which file, so it is final here."""
        if fault is not None:
            self._flushing.fault = FlushFailed(f"{self._flushing.directory}: {fault}")
            raise self._flushing.fault
        self._flushing.is_parent_safe = True
        if self._epochs is not None:
            self._flushing.write_epochs(self._epochs)


class Flushing:
    """The flushes of one log. All but the work that `begin` hands out belongs to the loop."""

    __slots__ = (
        "_disk", "_epochs", "_flushed_bytes", "_flushes", "_timed", "directory", "directory_changed",
        "epoch_changes_noted", "epoch_changes_saved", "fault", "is_parent_safe", "rolled", "saved_epoch",
    )  # fmt: skip

    def __init__(
        self, disk: Disk, directory: str, epochs: EpochHistory, saved_epoch: Epoch, flushed_bytes: int = 0
    ) -> None:
        self._disk = disk
        self._epochs = epochs
        self.directory = directory
        #: Names in the directory may not be safe. True at first: nobody knows what the process before this one did.
        self.directory_changed = True
        #: Segments that were rolled and not flushed yet.
        self.rolled: list[Segment] = []
        #: The failed flush after which nothing more is flushed or written.
        self.fault: DiskFault | None = None
        #: How the epochs were when they were last written to their file, and when the broker's journal had the rest.
        self.epoch_changes_saved = epochs.change_count if epochs.last == saved_epoch else -1
        #: The last epoch that the file has.
        self.saved_epoch = saved_epoch
        self.epoch_changes_noted = epochs.change_count
        self._flushes: deque[_Flush] = deque()
        self._timed: list[tuple[Segment, int]] = []
        #: How much of the segment that is written to the last flush covers.
        self._flushed_bytes = flushed_bytes
        #: Whether the name of the directory itself is known to be safe.
        self.is_parent_safe = False

    @property
    def is_under_way(self) -> bool:
        return bool(self._flushes)

    @property
    def names_are_safe(self) -> bool:
        """Whether every segment in the log would still have its file after a crash now."""
        return not (self.directory_changed or self.rolled or self._flushes)

    @property
    def has_unsafe_epochs(self) -> bool:
        return self._epochs.change_count not in (self.epoch_changes_saved, self.epoch_changes_noted)

    def is_due(self, active: Segment) -> bool:
        """Whether there is something to do besides what was appended to the active segment."""
        if self.rolled or self._timed or active.index_memory_bytes > INDEX_MEMORY_BYTES:
            return True
        if active.size - self._flushed_bytes > UNFLUSHED_BYTES_MAX:
            return True
        return self._epochs.change_count != self.epoch_changes_saved and self.has_unsafe_epochs

    def begin(
        self, active: Segment, end_offset: Offset, flushed_offset: Offset, segments_max: int | None = None
    ) -> FlushWork | None:
        """Blocking work that makes everything up to `end_offset` safe, or None if it is, or cannot be any more.

        With `segments_max` it ends where so many segments end: the next flush goes on there.
        """
        promised = self._flushes[-1].end_offset if self._flushes else flushed_offset
        if self.fault is not None or (promised >= end_offset and not self.is_due(active)):
            return None
        covered, left = [*self.rolled, active], []
        if segments_max is not None and len(covered) > segments_max:
            covered, left = self.rolled[:segments_max], self.rolled[segments_max:]
            end_offset = covered[-1].end.offset
        else:
            self._flushed_bytes = active.size
        segments = [(one, len(one.time_index), len(one.offset_index)) for one in covered]
        # What the broker's journal has noted is safe, and is written to the log's own file when that is closed. Two
        # flushes more for each of thousands of logs, when all are first written to after a start, take many seconds.
        epochs = self.unsaved_epochs() if self.has_unsafe_epochs or self._has_many_noted() else None
        written = (self._epochs.change_count, self._epochs.last) if epochs is not None else None
        flush = _Flush(end_offset, segments, self._timed, written)
        directory_changed = self.directory_changed
        self._flushes.append(flush)
        self.rolled, self._timed, self.directory_changed = left, [], False

        return FlushWork(self, flush, epochs, directory_changed=directory_changed)

    def make_safe(self, flush: _Flush, epochs: bytes | None, *, directory_changed: bool) -> None:
        """Flush what it covers, file by file. Blocks."""
        for segment, _, _ in flush.segments:
            segment.flush()
        for segment, _ in flush.timed:
            segment.flush_times()
        if epochs is not None:
            self.write_epochs(epochs)
        elif directory_changed:
            self._disk.flush_directory(self.directory)
        if not self.is_parent_safe:
            self._disk.flush_directory(self.directory.rpartition("/")[0])
            self.is_parent_safe = True

    def write_epochs(self, epochs: bytes) -> None:
        """Blocks until they are safe, and the names in the directory with them."""
        self._disk.replace_file(f"{self.directory}/{epoch_file.FILE_NAME}", epochs)

    def done(self, active: Segment) -> Offset:
        """The oldest flush is done. Returns the offset up to which the log is safe."""
        flush = self._flushes.popleft()
        if flush.epochs is not None and flush.epochs[0] > self.epoch_changes_saved:
            self.epoch_changes_saved, self.saved_epoch = flush.epochs
        for segment, offset_count in flush.timed:
            if not segment.is_retired:
                segment.write_offsets(offset_count)
        for segment, time_count, offset_count in flush.segments:
            is_wanted = segment is not active or segment.index_memory_bytes > INDEX_MEMORY_BYTES
            if is_wanted and not segment.is_retired and segment.index_memory_bytes and segment.write_times(time_count):
                self._timed.append((segment, offset_count))
        return flush.end_offset

    def failed(self, active: Segment) -> None:
        """The oldest flush was not done, though nothing is lost by that: the next one has to do it."""
        flush = self._flushes.popleft()
        left = [segment for segment, _, _ in flush.segments if segment is not active and segment not in self.rolled]
        self.rolled = [*left, *self.rolled]
        self._timed = flush.timed + self._timed
        self.directory_changed = True

    def abandon(self, active: Segment) -> None:
        """Count what is under way for nothing: it may never be done."""
        for flush in self._flushes:
            self.rolled += [segment for segment, _, _ in flush.segments if segment is not active]
            self.directory_changed = True
        self._flushes.clear()

    def forget(self, segments: Iterable[Segment]) -> None:
        """These are no longer in the log."""
        gone = set(map(id, segments))
        self.rolled = [segment for segment in self.rolled if id(segment) not in gone]

    def unsaved_marks(self) -> list[EpochMark]:
        """Those that the file of epochs does not have."""
        return [mark for mark in self._epochs.marks if mark.epoch > self.saved_epoch]

    def _has_many_noted(self) -> bool:
        """The journal should not keep more and more for us, start after start."""
        if self._epochs.change_count == self.epoch_changes_saved or len(self._epochs.marks) <= NOTED_MARKS_MAX:
            return False
        return len(self.unsaved_marks()) > NOTED_MARKS_MAX

    def unsaved_epochs(self) -> bytes | None:
        """What the file of epochs has to say, if it does not."""
        return encode_epochs(self._epochs) if self._epochs.change_count != self.epoch_changes_saved else None

    def make_all_safe(self, active: Segment) -> None:
        """Flush all files and names, whatever is known of them. Blocks."""
        for segment in (*self.rolled, active):
            segment.flush()
        self._disk.flush_directory(self.directory)
        if not self.is_parent_safe:
            self._disk.flush_directory(self.directory.rpartition("/")[0])

    def all_is_safe(self) -> None:
        """Somebody has flushed everything, the epochs too. No flush is under way."""
        self.rolled, self._timed, self.directory_changed, self.is_parent_safe = [], [], False, True
        self.epoch_changes_saved, self.saved_epoch = self._epochs.change_count, self._epochs.last

    def save_epochs(self) -> None:
        """At once. Blocks; no flush may be under way, it would write older ones."""
        assert not self._flushes
        self.write_epochs(encode_epochs(self._epochs))
        self.epoch_changes_saved, self.saved_epoch = self._epochs.change_count, self._epochs.last
