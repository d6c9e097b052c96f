"""A log that becomes shorter: at its end when a leader's is another (truncation), at its front when records are old or
deleted, or altogether when it begins anew.

Each of these is written down before it shows, so that a power failure never brings back what was gone, and never takes
more than that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from zurau.epochs import EpochMark, Position
from zurau.errors import DiskFault, FlushFailed
from zurau.ids import Epoch, Offset
from zurau.log.batch_file import SegmentEnd
from zurau.log.checkpoint import Checkpoint, CheckpointFile, ReplaceFile
from zurau.log.compacting import Compacting
from zurau.log.files import DELETED_SUFFIX
from zurau.log.flushing import Flushing
from zurau.log.reading import ReadableLog, base_offset_of
from zurau.log.recovery import Recovery
from zurau.log.removal import Removals
from zurau.log.retention import count_expired, is_older
from zurau.log.segment import Segment
from zurau.log.segment_files import reopen_segment
from zurau.log.settings import LogSettings
from zurau.ports import Disk

#: Segments that expire in one step of the loop: their files are renamed, some milliseconds.
EXPIRED_AT_ONCE = 100


class ShrinkableLog(ReadableLog):
    """What `Log` has, and how it forgets."""

    __slots__ = (
        "_active", "_checkpoints", "_compacting", "_disk", "_flushing", "_known_since_ms", "_removals", "epochs",
        "flushed_offset", "settings",
    )  # fmt: skip

    def __init__(
        self,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        recovery: Recovery,
        saved: Checkpoint | None,
        now_ms: int,
    ) -> None:
        self._disk = disk
        self.directory = directory
        self.settings = settings
        #: Never changed in place: a worker that reads holds on to the list it began with.
        self._segments = recovery.segments
        self._active = self._segments[-1]
        self._known_since_ms = now_ms
        known = saved or Checkpoint()
        self.start_offset: Offset = max(known.start_offset, self._segments[0].base_offset)
        if saved is None:  # lost, or never written: then no epoch begins later than the segments
            self.start_offset = max(self.start_offset, recovery.epochs_start)
        self.end_offset: Offset = max(self._active.end.offset, self.start_offset)
        self.flushed_offset: Offset = self.end_offset
        self.epochs = recovery.epochs
        self.epochs.advance_start(self.start_offset)
        self._checkpoints = CheckpointFile(disk, directory, saved)
        self._flushing = Flushing(disk, directory, self.epochs, recovery.saved_epoch, self._active.size)
        self._removals = Removals(disk, directory, recovery.leftovers, recovery.expired_mark)
        self._compacting = Compacting(disk, directory, max(known.compacted_offset, self.start_offset))

    @property
    def compacted_offset(self) -> Offset:
        """Up to where it has been compacted."""
        return self._compacting.upto_offset

    # Its end

    def truncate(self, point: Position) -> None:
        """Drop marks of later epochs than the point's, and its offset and everything after it, for good when this
        returns. Blocks; rare.

        Also at the very end: the mark of a leader that wrote nothing has to go too, or the log would pass for one of
        a later epoch. No flush may be under way: it would write down marks that are gone.
        """
        self._require_writable()
        assert not self._flushing.is_under_way
        if point.offset < self.end_offset:
            self._cut_end(point.offset)
        self.epochs.truncate(Position(point.epoch, self.end_offset))
        # Not left to the next flush: until then other batches may come to the offsets of the epochs that are gone.
        self._flushing.save_epochs()

    def _cut_end(self, offset: Offset) -> None:
        if offset <= self.start_offset:
            self._start_over(offset)
            return
        number = bisect_right(self._segments, offset, key=base_offset_of) - 1
        kept, cut, later = self._segments[:number], self._segments[number], self._segments[number + 1 :]
        cut.retire()
        cut.cut_files(offset)
        cut.close()
        self._active = reopen_segment(self._disk, self.directory, cut.base_offset, self.settings)
        self._segments = [*kept, self._active]
        self._removals.put_away(later)
        self._flushing.forget([cut, *later])
        self._disk.flush_directory(self.directory)
        if self._active.end.offset < self.start_offset:
            self._start_over(self.start_offset)  # the only batch left began before the start, and was cut too
        else:
            self._end_at(self._active.end.offset)

    def restart(self, mark: EpochMark) -> None:
        """Forget everything and go on behind `mark`, for good when this returns. Blocks; rare. No flush may run."""
        self._require_writable()
        assert not self._flushing.is_under_way
        self._start_over(mark.start_offset, mark.epoch)
        self.epochs.restart(mark)
        self._flushing.save_epochs()
        self._save()  # it is done

    def _start_over(self, offset: Offset, restart_epoch: Epoch | None = None) -> None:
        self._save(Checkpoint(offset, offset, restart_epoch=restart_epoch))
        self.start_offset = self._compacting.upto_offset = offset
        old, self._segments = self._segments, [self._new_segment(offset)]
        self._active = self._segments[0]
        self._flushing.forget(old)
        self._removals.put_away(reversed(old))  # should the power go, the log ends early; it does not begin late
        self._disk.flush_directory(self.directory)
        self._end_at(offset)

    def _end_at(self, offset: Offset) -> None:
        self.end_offset = offset
        self.flushed_offset = min(self.flushed_offset, offset)

    # Its front

    def advance_start(self, offset: Offset) -> None:
        """Forget everything before `offset`, for good when this returns. Blocks for a flush."""
        if offset > self.start_offset:
            self.begin_advance_start(offset)()
            self.start_advanced()

    def begin_advance_start(self, offset: Offset) -> Callable[[], None]:
        """Blocking work that writes down that everything before `offset` is gone. Then call `start_advanced`, or
        `start_not_advanced` if it failed. One at a time, and not while the log is truncated."""
        assert offset <= self.end_offset
        return self._checkpoints.begin(Checkpoint(max(offset, self.start_offset), self.compacted_offset))

    def start_advanced(self) -> None:
        """It is written down: nobody reads below it from now on."""
        saved = self._checkpoints.done()
        if saved is not None and saved.start_offset >= self.start_offset:  # or else more has expired meanwhile
            self._removals.mark_expired(None)
            self.start_offset = saved.start_offset
            self.epochs.advance_start(saved.start_offset)

    def start_not_advanced(self) -> None:
        """It may be written down or not; for those who ask, nothing has changed."""
        self._checkpoints.given_up()

    def start_to_write_down(self, now_ms: int, upto_offset: Offset) -> Offset | None:
        """Where the log shall start before old segments go; None: they can go.

        What stays may not be on disk yet, and a crash could leave an empty directory, which would begin at 0 again.
        """
        self._roll_if_expired(now_ms)
        count = self._count_expired(now_ms, upto_offset)
        return self._segments[count].base_offset if count and self._needs_written_start(count) else None

    def expire(self, now_ms: int, upto_offset: Offset) -> int:
        """Remove old segments that lie wholly below `upto_offset`: some at a time, so call it until it returns 0.

        Blocks for two flushes where there is a start to write down. Returns how many; see `take_removals`.
        """
        self._roll_if_expired(now_ms)
        count = self._count_expired(now_ms, upto_offset)
        return self._remove_oldest(min(count, EXPIRED_AT_ONCE)) if count else 0

    def _count_expired(self, now_ms: int, upto_offset: Offset) -> int:
        return count_expired(
            self._segments,
            self.settings,
            now_ms=now_ms,
            known_since_ms=self._known_since_ms,
            start_offset=self.start_offset,
            upto_offset=upto_offset,
        )

    def _needs_written_start(self, count: int) -> bool:
        """Whether a crash could leave nothing that tells where the log starts without its oldest segments."""
        is_unsafe = not self._flushing.names_are_safe or not self._active.size
        return is_unsafe and self._checkpoints.saved_start < self._segments[count].base_offset

    def _roll_if_expired(self, now_ms: int) -> None:
        active = self._active
        expires = "delete" in self.settings.cleanup_policy and active.size > 0
        if expires and is_older(active, self.settings.retention_ms, now_ms=now_ms, known_since_ms=self._known_since_ms):
            self._roll(self.end_offset)

    def _remove_oldest(self, count: int) -> int:
        """Returns how many could be removed."""
        if self._needs_written_start(count):
            count = self._keep_start_safe(count)
        removed, kept = self._segments[:count], self._segments[count:]
        self.start_offset = max(self.start_offset, kept[0].base_offset)
        self.flushed_offset = max(self.flushed_offset, self.start_offset)
        self.epochs.advance_start(self.start_offset)
        self._segments = kept
        self._flushing.forget(removed)
        self._removals.put_away(removed)
        if self._checkpoints.saved_start < self.start_offset:
            self._removals.mark_expired(removed[-1].path + DELETED_SUFFIX)
        return count

    def _keep_start_safe(self, count: int) -> int:
        """Write down the start. If there is no room even for that, the names of what stays tell it: then they are made
        safe, and of segments that all may go one is kept."""
        start = max(self.start_offset, self._segments[count].base_offset)
        try:
            self._save(Checkpoint(start, self.compacted_offset))
        except FlushFailed:
            raise
        except DiskFault:
            count = count if self._active.size else count - 1
            if not count:
                raise
            self._disk.flush_directory(self.directory)
        return count

    def take_removals(self) -> Callable[[], None] | None:
        """Blocking work that removes the files nobody needs any more, or None."""
        return self._removals.take()

    # Its files

    def _require_writable(self) -> None:
        if self._flushing.fault is not None:
            raise DiskFault(f"{self.directory} takes no more writes until it is opened: {self._flushing.fault}")

    def _roll(self, next_offset: Offset) -> Segment:
        """Begin a new segment. The old one is flushed by the next flush.

        Where the old one ends, even if the next batch, a copy out of a compacted log, or an epoch's mark is further on:
        what lies between would look lost (see recovery). Only an empty one is replaced.
        """
        old = self._active
        new = self._new_segment(old.end.offset if old.size else next_offset)
        if old.size:
            old.index_time()
            self._flushing.rolled.append(old)
            self._segments = [*self._segments, new]
        else:
            self._removals.put_away([old])
            self._segments = [*self._segments[:-1], new]
        self._active = new
        return new

    def _new_segment(self, base_offset: Offset) -> Segment:
        return Segment(self._disk, self.directory, SegmentEnd(base_offset, 0), base_offset=base_offset)

    @property
    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(self.start_offset, self.compacted_offset)

    def _save(self, checkpoint: Checkpoint | None = None, replace_file: ReplaceFile | None = None) -> None:
        self._checkpoints.save(checkpoint or self._checkpoint, replace_file)
        self._removals.mark_expired(None)

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}"
