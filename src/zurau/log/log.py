"""A partition's batches on disk: append at the end, read anywhere, forget at the front.

The loop owns a log: it appends, rolls, truncates and expires. Workers may read it meanwhile. Work that blocks is
handed out and concluded:

    on the loop                        in a worker    back on the loop
    work = log.begin_flush()           work()         log.flush_done()
    work = log.take_removals()         work()
    job = log.plan_compaction(...)     job.run()      log.finish_compaction(job)

A flush that failed is final: the kernel may have thrown away what it could not write and would report success the
next time. The log then refuses to be written to until it is opened anew; reads go on.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import suppress

from zurau.errors import DiskFault, FlushFailed, OffsetOutOfRange
from zurau.ids import Offset
from zurau.log import checkpoint as checkpoint_file
from zurau.log import timestamps
from zurau.log.batch_file import SegmentEnd
from zurau.log.checkpoint import Checkpoint, load_checkpoint
from zurau.log.compaction import CompactionJob, compactable, is_worthwhile, swap_in
from zurau.log.damage import DamagedRange
from zurau.log.files import DELETED_SUFFIX, empty_file, rename_away
from zurau.log.flushing import Flushing
from zurau.log.joining import join
from zurau.log.known_damage import save_damage
from zurau.log.last_known import LastKnown
from zurau.log.recovery import Recovery, reopen_segment
from zurau.log.retention import count_expired, is_older
from zurau.log.segment import Segment
from zurau.log.settings import LogSettings
from zurau.log.timestamps import OffsetAndTimestamp
from zurau.ports import Buffer, Disk
from zurau.records.batch import BatchHeader

log = logging.getLogger("zurau.log")


class Log:
    """See the module. Make one with `Log.open`."""

    __slots__ = (
        "_active", "_compaction", "_disk", "_expired_mark", "_flushing", "_horizon_ms", "_known_since_ms", "_removals",
        "_saved", "_segments", "compacted_offset", "directory", "end_offset", "epochs", "flushed_offset", "settings",
        "start_offset",
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
        if saved is None:  # lost, or never written
            self.start_offset = max(self.start_offset, recovery.epochs_start)
        self.end_offset: Offset = max(self._active.end.offset, self.start_offset)
        self.flushed_offset: Offset = self.end_offset
        self.compacted_offset: Offset = max(known.compacted_offset, self.start_offset)
        self.epochs = recovery.epochs
        self.epochs.cut_start(self.start_offset)
        self._saved = saved
        self._flushing = Flushing(disk, directory, self.epochs)
        self._removals = recovery.leftovers
        #: A file that shows that old segments went rightly, until the checkpoint says so.
        self._expired_mark: str | None = recovery.expired_mark
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
        recovery = Recovery(disk, directory, settings, saved, last_known, clean=clean or not names)
        recovery.run(names)
        opened = cls(disk, directory, settings, recovery, saved, now_ms)
        if opened._expired_mark is not None:
            with suppress(DiskFault):  # then the mark stays
                opened._save()
        return opened

    # What is known of it

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
        self._require_writable()
        assert header.base_offset >= self.end_offset, f"{header.base_offset} is before the end, {self.end_offset}"
        settings = self.settings
        segment = self._active
        if not segment.has_room_for(header, settings.segment_bytes, settings.segment_index_bytes) or (
            segment.spans(header.max_timestamp) > settings.segment_ms
        ):
            # Where the old one ends, even if the batch, a copy out of a compacted log, begins later (see recovery).
            segment = self._roll(self.end_offset if segment.size else header.base_offset)
            if len(self._segments) == 1:
                # The first of all begins later than offset 0. Written down, or it would look as if some were missing.
                self.start_offset = header.base_offset
                self._save()
        if segment.end.position == 0:
            self._flushing.directory_changed = True
        segment.append(batch, header, settings.index_interval_bytes)
        if header.leader_epoch > self.epochs.last_epoch:
            self.epochs.assign(header.leader_epoch, header.base_offset)
        self.end_offset = header.next_offset

    def _roll(self, base_offset: Offset) -> Segment:
        """Begin a new segment. The old one is flushed by the next flush."""
        old = self._active
        new = self._new_segment(base_offset)
        if old.size:
            old.index_time()
            self._flushing.rolled.append(old)
            self._segments = [*self._segments, new]
        else:
            self._put_away([old])
            self._segments = [*self._segments[:-1], new]
        self._active = new
        return new

    # Reading

    def read(self, offset: Offset, max_bytes: int, upto_offset: Offset, *, may_block: bool = False) -> bytes:
        """Whole batches from the one that holds `offset`, below `upto_offset`; the first one however large it is.

        Raises `OffsetOutOfRange`, or `WouldBlock` if the bytes are not in memory and `may_block` is False. May be
        called from a worker.
        """
        while True:
            if not self.start_offset <= offset <= self.end_offset:
                raise OffsetOutOfRange(f"{self.directory} holds {self.start_offset} to {self.end_offset}, not {offset}")
            if offset >= min(upto_offset, self.end_offset):
                return b""
            segments = self._segments
            number = bisect_right(segments, offset, key=_base_offset) - 1
            segment = segments[max(0, number)]
            try:
                data = segment.read(offset, max_bytes, upto_offset, may_block=may_block)
            except DiskFault:
                if segment.is_retired:
                    continue
                raise
            if segment.is_retired:
                continue
            following = max(0, number) + 1
            if data or following == len(segments):
                upto = min(upto_offset, self.end_offset)
                return join(data, segments, following, max_bytes, upto, may_block=may_block)
            offset = segments[following].base_offset

    def headers(self, from_offset: Offset) -> Iterator[BatchHeader]:
        """The header of every batch from the one that holds `from_offset` on, past what is damaged. Blocks."""
        for segment in self._segments:
            if segment.end.offset > from_offset:
                try:
                    for _, header in segment.headers(segment.find(from_offset)):
                        yield header
                except DiskFault as fault:
                    if segment is self._active:
                        raise
                    log.error("%s cannot be read to its end: %s", segment.path, fault)  # noqa: TRY400 - says it all

    def find_by_timestamp(self, timestamp_ms: int, upto_offset: Offset) -> OffsetAndTimestamp | None:
        """The first record as late as `timestamp_ms` or later. Blocks."""
        return timestamps.find_by_timestamp(self._segments, timestamp_ms, self.start_offset, upto_offset)

    def find_max_timestamp(self, upto_offset: Offset) -> OffsetAndTimestamp | None:
        """The record with the largest timestamp. Blocks."""
        return timestamps.find_max_timestamp(self._segments, self.start_offset, upto_offset)

    # Flushing

    @property
    def needs_flush(self) -> bool:
        """Whether a flush is due even where appends do not wait for one: for old segments, epochs and indexes."""
        return self._flushing.is_due(self._active)

    def begin_flush(self) -> Callable[[], None] | None:
        """Blocking work that makes everything appended so far safe, or None. Then call `flush_done`."""
        return self._flushing.begin(self._active, self.end_offset, self.flushed_offset)

    def flush_done(self) -> None:
        """The work of the oldest flush is done: what was appended before it began is safe."""
        if self._flushing.is_under_way:  # or else the log was closed meanwhile, and made safe there and then
            self.flushed_offset = max(self.flushed_offset, self._flushing.done(self._active))

    def flush_failed(self) -> None:
        """The work of the oldest flush failed, but not with `FlushFailed`: it is left to the next one."""
        if self._flushing.is_under_way:
            self._flushing.failed(self._active)

    def _flush_now(self) -> None:
        """Everything, here and now. Blocks."""
        self._flushing.abandon(self._active)
        work = self.begin_flush()
        if work is not None:
            work()
            self.flush_done()

    # Forgetting

    def truncate_to(self, offset: Offset) -> None:
        """Forget `offset` and everything after it, for good when this returns. Blocks; rare.

        No flush may be under way: it would write down epochs that are gone.
        """
        if offset >= self.end_offset:
            return
        self._require_writable()
        assert not self._flushing.is_under_way
        if offset <= self.start_offset:
            self.restart_at(offset)
            return
        number = bisect_right(self._segments, offset, key=_base_offset) - 1
        kept, cut, later = self._segments[:number], self._segments[number], self._segments[number + 1 :]
        cut.retire()
        cut.cut_files(offset)
        cut.close()
        self._active = reopen_segment(self._disk, self.directory, cut.base_offset, self.settings)
        self._segments = [*kept, self._active]
        self._put_away(later)
        self._flushing.forget([cut, *later])
        self._disk.flush_directory(self.directory)
        if self._active.end.offset < self.start_offset:
            self.restart_at(self.start_offset)  # the only batch left began before the start, and was cut too
        else:
            self._end_at(self._active.end.offset)

    def restart_at(self, offset: Offset) -> None:
        """Forget everything and go on at `offset`, for good when this returns. Blocks; rare. No flush may run."""
        self._require_writable()
        assert not self._flushing.is_under_way
        self._save(Checkpoint(offset, offset))
        self.start_offset = self.compacted_offset = offset
        old, self._segments = self._segments, [self._new_segment(offset)]
        self._active = self._segments[0]
        self._flushing.forget(old)
        self._put_away(old)
        self._disk.flush_directory(self.directory)
        self._end_at(offset)

    def _require_writable(self) -> None:
        if self._flushing.fault is not None:
            raise DiskFault(f"{self.directory} takes no more writes until it is opened: {self._flushing.fault}")

    def _end_at(self, offset: Offset) -> None:
        self.end_offset = offset
        self.flushed_offset = min(self.flushed_offset, offset)
        self.epochs.cut_end(offset)
        # Not left to the next flush: until then other batches may come to the offsets of the epochs that are gone.
        self._flushing.save_epochs()

    def advance_start(self, offset: Offset) -> None:
        """Forget everything before `offset`, for good when this returns. Blocks for a flush; rare."""
        assert offset <= self.end_offset
        if offset > self.start_offset:
            self._save(Checkpoint(offset, self.compacted_offset))
            self.start_offset = offset
            self.epochs.cut_start(offset)

    def expire(self, now_ms: int, upto_offset: Offset) -> int:
        """Remove old segments that lie wholly below `upto_offset`. Returns how many; see `take_removals`."""
        self._roll_if_expired(now_ms)
        count = count_expired(
            self._segments,
            self.settings,
            now_ms=now_ms,
            known_since_ms=self._known_since_ms,
            start_offset=self.start_offset,
            upto_offset=upto_offset,
        )
        return self._remove_oldest(count) if count else 0

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
        self.epochs.cut_start(self.start_offset)
        self._segments = kept
        self._flushing.forget(removed)
        self._put_away(removed)
        if self._saved is None or self._saved.start_offset < self.start_offset:
            self._mark_expired(removed[-1].path + DELETED_SUFFIX)
        return count

    def _mark_expired(self, path: str | None) -> None:
        """Keep one removed file, empty, until the checkpoint tells the new start: the others did not get lost.

        The checkpoint is not written at once, because that blocks.
        """
        if self._expired_mark is not None:
            self._removals.append(self._expired_mark)
        self._expired_mark = path

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

    def _put_away(self, segments: list[Segment]) -> None:
        """Take the files of segments that are no longer in the log out of the way; a worker removes them."""
        for segment in segments:
            segment.retire()
            segment.close()
            self._removals += rename_away(self._disk, segment.stem)

    def take_removals(self) -> Callable[[], None] | None:
        """Blocking work that removes the files nobody needs any more, or None."""
        paths, self._removals = self._removals, []
        if not paths:
            return None
        mark = self._expired_mark

        def work() -> None:
            if mark is not None:
                self._disk.flush_directory(self.directory)  # it has its new name for good before it is emptied
            for path in paths:
                if path == mark:
                    empty_file(self._disk, path)
                else:
                    self._disk.remove(path)

        return work

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
        segments = compactable(self._segments, settings, upto_offset=upto, now_ms=now_ms)
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
        self._removals += removals
        self._flushing.directory_changed = True
        self.compacted_offset = job.compacted_offset
        self._horizon_ms = job.horizon_ms

    # The end

    def close(self, *, clean: bool = True) -> None:
        """Close the files; if `clean`, make all safe first, so that it can be opened without a check. Blocks."""
        if clean and self._flushing.fault is None:
            self._flush_now()
            for segment in self._segments:
                segment.index_time()
                segment.write_indexes()
            self._save_if_new()
            save_damage(self._disk, self.directory, self.damage)
            with suppress(DiskFault):
                for path in self._removals:
                    self._disk.remove(path)
        for segment in self._segments:
            segment.close()

    def delete(self) -> None:
        """Remove the whole directory. Blocks."""
        for segment in self._segments:
            segment.retire()
            segment.close()
        self._disk.remove_tree(self.directory)

    def _new_segment(self, base_offset: Offset) -> Segment:
        return Segment(self._disk, self.directory, SegmentEnd(base_offset, 0), base_offset=base_offset)

    def _save_if_new(self) -> None:
        if self._saved is None and self._checkpoint == Checkpoint():
            if len(self._segments) > 1:  # or else, if the first one is ever missing, all are
                with suppress(DiskFault):  # the first one of a log that starts at 0: good to have, and no more
                    self._save()
        elif self._checkpoint != self._saved:
            self._save()

    @property
    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(self.start_offset, self.compacted_offset)

    def _save(self, checkpoint: Checkpoint | None = None) -> None:
        checkpoint = checkpoint or self._checkpoint
        self._disk.replace_file(self._path(checkpoint_file.FILE_NAME), checkpoint.content())
        self._saved = checkpoint
        self._mark_expired(None)

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}"


def _base_offset(segment: Segment) -> Offset:
    return segment.base_offset
