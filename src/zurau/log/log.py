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
from collections.abc import Callable, Iterator
from contextlib import suppress

from zurau.epochs import EpochMark, Position
from zurau.errors import DiskFault
from zurau.ids import Offset
from zurau.log import checkpoint as checkpoint_file
from zurau.log import epochs as epoch_file
from zurau.log.checkpoint import Checkpoint, ReplaceFile, load_checkpoint
from zurau.log.compaction import CompactionJob
from zurau.log.damage import DamagedRange
from zurau.log.flushing import FlushWork
from zurau.log.known_damage import save_damage
from zurau.log.last_known import LastKnown
from zurau.log.recovery import Recovery
from zurau.log.restarting import complete_restart
from zurau.log.segment import Segment
from zurau.log.settings import LogSettings
from zurau.log.shrinking import ShrinkableLog
from zurau.ports import Buffer, Disk
from zurau.records.batch import BatchHeader

log = logging.getLogger("zurau.log")


class Log(ShrinkableLog):
    """See the module. Make one with `Log.open`."""

    __slots__ = ()

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

    def first_file(self) -> Callable[[], None] | None:
        """Blocking work that makes the file of a log that was never written to, so that the first write need not; None
        if it has one. For any thread: should the log be gone when it is done, an empty file is all that is left."""
        path = self._active.path
        if self.end_offset or self._active.is_open:
            return None

        def work() -> None:
            with suppress(DiskFault):  # whoever writes meets it again
                self._disk.open(path).close()

        return work

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
        return self._roll(header.base_offset)

    def mark(self, mark: EpochMark) -> None:
        """From here on it is this epoch that writes. Safe with the next flush, or where the broker's journal has it."""
        self._require_writable()
        self.epochs.add(mark)
        self.end_offset = max(self.end_offset, mark.start_offset)

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

    # Compacting

    def plan_compaction(self, now_ms: int, upto_offset: Offset) -> CompactionJob | None:
        """A compaction of what lies below `upto_offset`, or None if there is none to be had or it is not worth while.

        Run it in a worker; then, whether it went well or not, call `finish_compaction`.
        """
        settings = self.settings
        if "compact" not in settings.cleanup_policy or self._compacting.is_under_way:
            return None
        if self._active.spans(now_ms) > settings.max_compaction_lag_ms:
            self._roll(self.end_offset)
        upto = min(upto_offset, self.flushed_offset)
        return self._compacting.plan(self._segments, settings, upto_offset=upto, now_ms=now_ms)

    def finish_compaction(self, job: CompactionJob) -> None:
        """Put what the job made in the place of what it read; if it failed or came too late, throw it away."""
        swapped = self._compacting.finish(job, self._segments)
        if swapped is not None:
            self._segments, removals = swapped
            self._removals.add(removals)
            self._flushing.directory_changed = True

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
        self._checkpoints.given_up()  # no worker works any more
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
        self.note_damage()
        self._removals.remove_now()

    def note_damage(self) -> None:
        """Write down what is known to be damaged: the next start would not look at it. Blocks."""
        save_damage(self._disk, self.directory, self.damage)

    def _save_if_new(self, replace_file: ReplaceFile) -> bool:
        """Whether there was something to save."""
        before = self._checkpoints.saved
        if before is None and self._checkpoint == Checkpoint():
            if len(self._segments) > 1:  # or else, if the first one is ever missing, all are
                with suppress(DiskFault):  # the first one of a log that starts at 0: good to have, and no more
                    self._save(replace_file=replace_file)
        elif self._checkpoint != before:
            self._save(replace_file=replace_file)
        return self._checkpoints.saved is not before
