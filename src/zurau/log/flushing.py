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
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from zurau.errors import DiskFault, FlushFailed
from zurau.ids import Offset
from zurau.log import epochs as epoch_file
from zurau.log.epochs import EpochCache
from zurau.log.segment import Segment
from zurau.ports import Disk
from zurau.settings import KIB

#: Index entries kept in memory for the segment that is written to; more are written out at the next flush.
INDEX_MEMORY_BYTES = 64 * KIB


@dataclass(slots=True)
class _Flush:
    """A flush under way: what will be safe when it is done."""

    end_offset: Offset
    #: Each with how many entries of its time index and its offset index point into what is being flushed.
    segments: list[tuple[Segment, int, int]]
    #: Segments whose time entries are being flushed, with how many offset entries may be written then.
    timed: list[tuple[Segment, int]]
    epoch_changes: int


class Flushing:
    """The flushes of one log. All but the work that `begin` hands out belongs to the loop."""

    __slots__ = (
        "_disk", "_epochs", "_flushes", "_is_parent_safe", "_timed", "directory", "directory_changed",
        "epoch_changes_saved", "fault", "rolled",
    )  # fmt: skip

    def __init__(self, disk: Disk, directory: str, epochs: EpochCache) -> None:
        self._disk = disk
        self._epochs = epochs
        self.directory = directory
        #: Names in the directory may not be safe. True at first: nobody knows what the process before this one did.
        self.directory_changed = True
        #: Segments that were rolled and not flushed yet.
        self.rolled: list[Segment] = []
        #: The failed flush after which nothing more is flushed or written.
        self.fault: DiskFault | None = None
        self.epoch_changes_saved = epochs.change_count
        self._flushes: deque[_Flush] = deque()
        self._timed: list[tuple[Segment, int]] = []
        #: Whether the name of the directory itself is known to be safe.
        self._is_parent_safe = False

    @property
    def is_under_way(self) -> bool:
        return bool(self._flushes)

    @property
    def names_are_safe(self) -> bool:
        """Whether every segment in the log would still have its file after a crash now."""
        return not (self.directory_changed or self.rolled or self._flushes)

    def is_due(self, active: Segment) -> bool:
        """Whether there is something to do besides what was appended to the active segment."""
        return (
            bool(self.rolled or self._timed)
            or self._epochs.change_count != self.epoch_changes_saved
            or active.index_memory_bytes > INDEX_MEMORY_BYTES
        )

    def begin(self, active: Segment, end_offset: Offset, flushed_offset: Offset) -> Callable[[], None] | None:
        """Blocking work that makes everything up to `end_offset` safe, or None if it is, or cannot be any more."""
        promised = self._flushes[-1].end_offset if self._flushes else flushed_offset
        if self.fault is not None or (promised >= end_offset and not self.is_due(active)):
            return None
        segments = [(one, len(one.time_index), len(one.offset_index)) for one in (*self.rolled, active)]
        flush = _Flush(end_offset, segments, self._timed, self._epochs.change_count)
        epochs = self._epochs.content() if self._epochs.change_count != self.epoch_changes_saved else None
        directory_changed = self.directory_changed
        self._flushes.append(flush)
        self.rolled, self._timed, self.directory_changed = [], [], False

        def work() -> None:
            try:
                self._make_safe(flush, epochs, directory_changed=directory_changed)
            except FlushFailed as fault:
                self.fault = fault
                raise

        return work

    def _make_safe(self, flush: _Flush, epochs: bytes | None, *, directory_changed: bool) -> None:
        for segment, _, _ in flush.segments:
            segment.flush()
        for segment, _ in flush.timed:
            segment.flush_times()
        if epochs is not None:
            self._disk.replace_file(f"{self.directory}/{epoch_file.FILE_NAME}", epochs)  # flushes the directory too
        elif directory_changed:
            self._disk.flush_directory(self.directory)
        if not self._is_parent_safe:
            self._disk.flush_directory(self.directory.rpartition("/")[0])
            self._is_parent_safe = True

    def done(self, active: Segment) -> Offset:
        """The oldest flush is done. Returns the offset up to which the log is safe."""
        flush = self._flushes.popleft()
        self.epoch_changes_saved = max(self.epoch_changes_saved, flush.epoch_changes)
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

    def save_epochs(self) -> None:
        """At once. Blocks; no flush may be under way, it would write older ones."""
        assert not self._flushes
        self._disk.replace_file(f"{self.directory}/{epoch_file.FILE_NAME}", self._epochs.content())
        self.epoch_changes_saved = self._epochs.change_count
