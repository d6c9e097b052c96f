"""A partition's batches on disk: append at the end, read anywhere, forget at the front.

The loop owns a log: it appends, rolls, truncates and expires. Workers may read it meanwhile. Work that blocks is
handed out and concluded:

    on the loop                        in a worker    back on the loop
    work = log.begin_flush()           work()         log.flush_done()
    work = log.take_removals()         work()
    work = log.begin_advance_start(o)  work()         log.start_advanced(), or log.start_not_advanced()
    job = log.plan_compaction(...)     job.run()      log.finish_compaction(job)

A flush that failed is final: the kernel may have thrown away what it could not write and would report success the
next time. The log then refuses to be written to until it is opened anew; reads go on.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from zurau.epochs import EpochMark, Position
from zurau.errors import DiskFault, FlushFailed
from zurau.ids import Epoch, Offset
from zurau.log import checkpoint as checkpoint_file
from zurau.log import epochs as epoch_file
from zurau.log.batch_file import SegmentEnd
from zurau.log.checkpoint import Checkpoint, load_checkpoint
from zurau.log.compaction import CompactionJob, compactable, is_worthwhile, swap_in
from zurau.log.damage import DamagedRange
from zurau.log.files import DELETED_SUFFIX
from zurau.log.flushing import Flushing, FlushWork
from zurau.log.known_damage import save_damage
from zurau.log.last_known import LastKnown
from zurau.log.reading import ReadableLog, base_offset_of
from zurau.log.recovery import Recovery
from zurau.log.removal import Removals
from zurau.log.restarting import complete_restart
from zurau.log.retention import count_expired, is_older
from zurau.log.segment import Segment
from zurau.log.segment_files import reopen_segment
from zurau.log.settings import LogSettings
from zurau.ports import Buffer, Disk
from zurau.records.batch import BatchHeader

log = logging.getLogger("zurau.log")

#: Segments that expire in one step of the loop: their files are renamed, some milliseconds.
EXPIRED_AT_ONCE = 100
#: A path, and what the file holds from then on.
ReplaceFile = Callable[[str, bytes], None]


class Log(ReadableLog):
    """See the module. Make one with `Log.open`."""

    __slots__ = (
        "_active", "_compaction", "_disk", "_flushing", "_horizon_ms", "_known_since_ms", "_removals", "_saved",
        "_saving", "compacted_offset", "epochs", "flushed_offset", "settings",
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
        self.compacted_offset: Offset = max(known.compacted_offset, self.start_offset)
        self.epochs = recovery.epochs
        self.epochs.advance_start(self.start_offset)
        self._saved = saved
        #: What a worker is writing down at present.
        self._saving: Checkpoint | None = None
        self._flushing = Flushing(disk, directory, self.epochs, recovery.saved_epoch, self._active.size)
        self._removals = Removals(disk, directory, recovery.leftovers, recovery.expired_mark)
        self._compaction: CompactionJob | None = None
        #: When the next tombstones may go. Not known after a restart until something else is compacted.
        self._horizon_ms: int | None = None

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        *,
        now_ms: int,
        clean: bool,
        last_known: LastKnown | None = None,
    ) -> Log:
        """Open or make the log in `directory`. `clean`: it was closed properly. Blocks.

        `last_known`: what the broker's journal says of it; None if it says nothing.
        """
        names = disk.list_directory(directory)
        if not names:
            disk.make_directory(directory)
        saved = load_checkpoint(disk, directory) if checkpoint_file.FILE_NAME in names else None
        is_lost = checkpoint_file.FILE_NAME in names and saved is None
        if saved is not None and saved.restart_epoch is not None:
            saved, names = complete_restart(disk, directory, saved), disk.list_directory(directory)
        recovery = Recovery(
            disk, directory, settings, saved, last_known, clean=clean or not names, start_is_lost=is_lost
        )
        recovery.run(names)
        opened = cls(disk, directory, settings, recovery, saved, now_ms)
        if is_lost or opened._removals.expired_mark is not None:
            with suppress(DiskFault):  # then the mark stays
                opened._save()
        return opened

    # What is known of it

    @property
    def position(self) -> Position:
        """Where it ends, and in which epoch."""
        return Position(self.epochs.last, self.end_offset)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def damage(self) -> list[DamagedRange]:
        """What is known to be damaged, in order of offset. More may be found by whoever reads."""
        ranges = (one for segment in self._segments for one in segment.damage)
        return [one for one in ranges if one.next_offset > self.start_offset]

    # Writing

    def append(self, batch: Buffer, header: BatchHeader) -> None:
        """Write one stamped batch. Raises `DiskFault` with nothing changed."""
        if self._flushing.fault is not None:
            self._require_writable()
        settings = self.settings
        segment = self._active
        if header.base_offset < self.end_offset or not segment.takes(header, settings):
            segment = self._segment_for(header)
        if segment.end.position == 0:  # its file is made now
            self._flushing.directory_changed = True
        segment.append(batch, header, settings.index_interval_bytes)
        if header.leader_epoch > self.epochs.last:
            self.epochs.add(EpochMark(header.leader_epoch, header.base_offset))
        self.end_offset = segment.end.offset

    def _segment_for(self, header: BatchHeader) -> Segment:
        """A new one: the active segment is full, or begins too late for a batch that holds the log's start."""
        end = self.end_offset
        assert header.base_offset >= end or self.start_offset == end < header.next_offset, f"{header} is before {end}"
        if len(self._segments) == 1 and not self._active.size and header.base_offset > self.start_offset:
            # The first of all begins later than offset 0. Written down, or it would look as if some were missing.
            self._save(Checkpoint(header.base_offset, self.compacted_offset))
            self.start_offset = header.base_offset
        # Where the old one ends, even if the batch, a copy out of a compacted log, begins later (see recovery).
        return self._roll(end if self._active.size else header.base_offset)

    def mark(self, mark: EpochMark) -> None:
        """From here on it is this epoch that writes. Safe with the next flush, or where the broker's journal has it."""
        self._require_writable()
        self.epochs.add(mark)
        self.end_offset = max(self.end_offset, mark.start_offset)

    def _roll(self, base_offset: Offset) -> Segment:
        """Begin a new segment. The old one is flushed by the next flush."""
        old = self._active
        new = self._new_segment(base_offset)
        if old.size:
            old.index_time()
            self._flushing.rolled.append(old)
            self._segments = [*self._segments, new]
        else:
            self._removals.put_away([old])
            self._segments = [*self._segments[:-1], new]
        self._active = new
        return new

    # Flushing

    @property
    def needs_flush(self) -> bool:
        """Whether a flush is due even where appends do not wait for one: for old segments, epochs and indexes."""
        return self._flushing.is_due(self._active)

    @property
    def has_only_new_marks(self) -> bool:
        """Whether nothing but epoch marks has to be made safe: the broker's journal does that for many logs at once."""
        flushing = self._flushing
        return (
            self.flushed_offset == self.end_offset
            and flushing.has_unsafe_epochs
            and flushing.fault is None
            and not (flushing.is_under_way or flushing.rolled)
        )

    def unsaved_marks(self) -> list[EpochMark]:
        """Those that its own file does not have."""
        return self._flushing.unsaved_marks()

    def marks_noted(self, change_count: int) -> None:
        """The journal has the marks as they were at that count of changes."""
        self._flushing.epoch_changes_noted = change_count

    @property
    def has_rolled(self) -> bool:
        """Whether whole segments are not flushed: the next flush should not wait for more."""
        return bool(self._flushing.rolled)

    def begin_flush(self, segments_max: int | None = None) -> FlushWork | None:
        """Blocking work that makes everything appended so far safe, or None. Then call `flush_done`.

        With `segments_max` it is no more than the oldest so many segments that are not safe, and there may be more.
        """
        return self._flushing.begin(self._active, self.end_offset, self.flushed_offset, segments_max)

    def flush_done(self) -> None:
        """The work of the oldest flush is done: what was appended before it began is safe."""
        if self._flushing.is_under_way:  # or else the log was closed meanwhile, and made safe there and then
            self.flushed_offset = max(self.flushed_offset, self._flushing.done(self._active))

    def flush_failed(self) -> None:
        """The work of the oldest flush failed, but not with `FlushFailed`: it is left to the next one."""
        if self._flushing.is_under_way:
            self._flushing.failed(self._active)

    # Forgetting

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
        self.start_offset = self.compacted_offset = offset
        old, self._segments = self._segments, [self._new_segment(offset)]
        self._active = self._segments[0]
        self._flushing.forget(old)
        self._removals.put_away(reversed(old))  # should the power go, the log ends early; it does not begin late
        self._disk.flush_directory(self.directory)
        self._end_at(offset)

    def _require_writable(self) -> None:
        if self._flushing.fault is not None:
            raise DiskFault(f"{self.directory} takes no more writes until it is opened: {self._flushing.fault}")

    def _end_at(self, offset: Offset) -> None:
        self.end_offset = offset
        self.flushed_offset = min(self.flushed_offset, offset)

    def advance_start(self, offset: Offset) -> None:
        """Forget everything before `offset`, for good when this returns. Blocks for a flush."""
        if offset > self.start_offset:
            self.begin_advance_start(offset)()
            self.start_advanced()

    def begin_advance_start(self, offset: Offset) -> Callable[[], None]:
        """Blocking work that writes down that everything before `offset` is gone. Then call `start_advanced`, or
        `start_not_advanced` if it failed. One at a time, and not while the log is truncated."""
        assert self._saving is None
        assert offset <= self.end_offset
        self._saving = Checkpoint(max(offset, self.start_offset), self.compacted_offset)
        return partial(self._disk.replace_file, self._path(checkpoint_file.FILE_NAME), self._saving.content())

    def start_advanced(self) -> None:
        """It is written down: nobody reads below it from now on."""
        saved, self._saving = self._saving, None
        if saved is not None:
            self._saved = saved
            if saved.start_offset >= self.start_offset:  # or else more has expired meanwhile
                self._removals.mark_expired(None)
                self.start_offset = saved.start_offset
                self.epochs.advance_start(saved.start_offset)

    def start_not_advanced(self) -> None:
        """It may be written down or not; for those who ask, nothing has changed."""
        self._saving = None

    def expire(self, now_ms: int, upto_offset: Offset) -> int:
        """Remove old segments that lie wholly below `upto_offset`: some at a time, so call it until it returns 0.

        Returns how many; see `take_removals`.
        """
        self._roll_if_expired(now_ms)
        count = count_expired(
            self._segments,
            self.settings,
            now_ms=now_ms,
            known_since_ms=self._known_since_ms,
            start_offset=self.start_offset,
            upto_offset=upto_offset,
        )
        return self._remove_oldest(min(count, EXPIRED_AT_ONCE)) if count else 0

    def _roll_if_expired(self, now_ms: int) -> None:
        active = self._active
        expires = "delete" in self.settings.cleanup_policy and active.size > 0
        if expires and is_older(active, self.settings.retention_ms, now_ms=now_ms, known_since_ms=self._known_since_ms):
            self._roll(self.end_offset)

    def _remove_oldest(self, count: int) -> int:
        """Returns how many could be removed."""
        if not self._flushing.names_are_safe or not self._active.size:
            count = self._keep_start_safe(count)
        removed, kept = self._segments[:count], self._segments[count:]
        self.start_offset = max(self.start_offset, kept[0].base_offset)
        self.flushed_offset = max(self.flushed_offset, self.start_offset)
        self.epochs.advance_start(self.start_offset)
        self._segments = kept
        self._flushing.forget(removed)
        self._removals.put_away(removed)
        if self._saved is None or self._saved.start_offset < self.start_offset:
            self._removals.mark_expired(removed[-1].path + DELETED_SUFFIX)
        return count

    def _keep_start_safe(self, count: int) -> int:
        """What stays may not be on disk yet, and a crash could leave an empty directory, which would begin at 0 again.

        So the start is written down. If there is no room even for that, the names of what stays tell it: then they
        are made safe, and of segments that all may go one is kept.
        """
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

    # Compacting

    def plan_compaction(self, now_ms: int, upto_offset: Offset) -> CompactionJob | None:
        """A compaction of what lies below `upto_offset`, or None if there is none to be had or it is not worth while.

        Run it in a worker; then, whether it went well or not, call `finish_compaction`.
        """
        settings = self.settings
        if "compact" not in settings.cleanup_policy or self._compaction is not None:
            return None
        if self._active.spans(now_ms) > settings.max_compaction_lag_ms:
            self._roll(self.end_offset)
        upto = min(upto_offset, self.flushed_offset)
        segments = compactable(
            self._segments, settings, compacted_offset=self.compacted_offset, upto_offset=upto, now_ms=now_ms
        )
        if not is_worthwhile(
            segments, settings, compacted_offset=self.compacted_offset, horizon_ms=self._horizon_ms, now_ms=now_ms
        ):
            return None
        self._compaction = CompactionJob(
            self._disk, self.directory, segments, settings, dirty_from=self.compacted_offset, now_ms=now_ms
        )
        return self._compaction

    def finish_compaction(self, job: CompactionJob) -> None:
        """Put what the job made in the place of what it read; if it failed or came too late, throw it away."""
        assert job is self._compaction
        self._compaction = None
        if not job.results or any(segment.is_retired for segment in job.segments):
            for path in job.left_behind():
                self._disk.remove(path)
            return
        self._segments, removals = swap_in(self._disk, self.directory, self._segments, job)
        self._removals.add(removals)
        self._flushing.directory_changed = True
        self.compacted_offset = job.compacted_offset
        self._horizon_ms = job.horizon_ms

    # The end

    def close(self, *, clean: bool = True) -> None:
        """Close the files; if `clean`, make all safe first, so that it can be opened without a check. Blocks."""
        if clean and self._flushing.fault is None:
            for _ in self.closing(self._disk.replace_file):
                self._flushing.make_all_safe(self._active)
                for segment in self._segments:
                    segment.flush_times()
        for segment in self._segments:
            segment.close()

    def closing(self, replace_file: ReplaceFile) -> Iterator[None]:
        """Write down all that a clean stop leaves, in steps. Blocks; then call `close(clean=False)`.

        Whenever it yields, everything that was written has to be made safe before it goes on. `replace_file` is the
        disk's, or one that has replaced the file when that is done.
        """
        assert self._flushing.fault is None, "what a failed flush has lost cannot be made safe"
        self._flushing.abandon(self._active)
        self._saving = None  # no worker works any more
        is_due = self.flushed_offset < self.end_offset or self._flushing.is_due(self._active)
        replaces = self._save_if_new(replace_file)
        epochs = self._flushing.unsaved_epochs()
        if epochs is not None:
            replace_file(self._path(epoch_file.FILE_NAME), epochs)
            replaces = True
        if is_due or replaces:
            yield
        self._flushing.all_is_safe()
        self.flushed_offset = self.end_offset
        for segment in self._segments:
            segment.index_time()
        timed = [one for one in self._segments if one.index_memory_bytes and one.write_times(len(one.time_index))]
        if timed or replaces:
            yield
        for segment in timed:
            segment.write_offsets(len(segment.offset_index))
        save_damage(self._disk, self.directory, self.damage)
        self._removals.remove_now()

    def _new_segment(self, base_offset: Offset) -> Segment:
        return Segment(self._disk, self.directory, SegmentEnd(base_offset, 0), base_offset=base_offset)

    def _save_if_new(self, replace_file: ReplaceFile) -> bool:
        """Whether there was something to save."""
        before = self._saved
        if before is None and self._checkpoint == Checkpoint():
            if len(self._segments) > 1:  # or else, if the first one is ever missing, all are
                with suppress(DiskFault):  # the first one of a log that starts at 0: good to have, and no more
                    self._save(replace_file=replace_file)
        elif self._checkpoint != before:
            self._save(replace_file=replace_file)
        return self._saved is not before

    @property
    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(self.start_offset, self.compacted_offset)

    def _save(self, checkpoint: Checkpoint | None = None, replace_file: ReplaceFile | None = None) -> None:
        if self._saving is not None:
            raise DiskFault(f"where {self.directory} starts is just being written down")
        checkpoint = checkpoint or self._checkpoint
        (replace_file or self._disk.replace_file)(self._path(checkpoint_file.FILE_NAME), checkpoint.content())
        self._saved = checkpoint
        self._removals.mark_expired(None)

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}"
