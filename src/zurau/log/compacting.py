"""When a log is compacted: which part of it, whether that is worth while, and what becomes of what a job has made."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice, takewhile

from zurau.ids import Offset
from zurau.log.compaction import CompactionJob
from zurau.log.files import complete_swap, rename_away
from zurau.log.segment import Segment
from zurau.log.segment_files import open_segment
from zurau.log.settings import LogSettings
from zurau.ports import Disk
from zurau.settings import INT64_MAX

#: New segments at a time: what replaces them is swapped in on the loop.
DIRTY_SEGMENTS_MAX = 200


class Compacting:
    """Of one log: one job at a time."""

    __slots__ = ("_directory", "_disk", "_horizon_ms", "_job", "upto_offset")

    def __init__(self, disk: Disk, directory: str, upto_offset: Offset) -> None:
        self._disk = disk
        self._directory = directory
        #: What is below this was compacted.
        self.upto_offset = upto_offset
        self._job: CompactionJob | None = None
        #: When the next tombstones may go. Not known after a restart until something else is compacted.
        self._horizon_ms: int | None = None

    @property
    def is_under_way(self) -> bool:
        return self._job is not None

    def plan(
        self, segments: Sequence[Segment], settings: LogSettings, *, upto_offset: Offset, now_ms: int
    ) -> CompactionJob | None:
        dirty_from = self.upto_offset
        chosen = _compactable(segments, settings, compacted_offset=dirty_from, upto_offset=upto_offset, now_ms=now_ms)
        if not _is_worthwhile(
            chosen, settings, compacted_offset=dirty_from, horizon_ms=self._horizon_ms, now_ms=now_ms
        ):
            return None
        # After a crash, segments that were merged are told from damaged ones by the file that begins where they end.
        segments[-1].make_file()
        self._job = CompactionJob(self._disk, self._directory, chosen, settings, dirty_from=dirty_from, now_ms=now_ms)
        return self._job

    def finish(self, job: CompactionJob, segments: Sequence[Segment]) -> tuple[list[Segment], list[str]] | None:
        """The segments with what the job made in the place of what it read, and which files may be removed then; None
        if it failed or came too late, and was thrown away."""
        assert job is self._job
        self._job = None
        if not job.results or any(segment.is_retired for segment in job.segments):
            for path in job.left_behind():
                self._disk.remove(path)
            return None
        swapped = _swap_in(self._disk, self._directory, segments, job)
        self.upto_offset, self._horizon_ms = job.compacted_offset, job.horizon_ms
        return swapped


def _compactable(
    segments: Sequence[Segment], settings: LogSettings, *, compacted_offset: Offset, upto_offset: Offset, now_ms: int
) -> list[Segment]:
    """The oldest segments, as far as they may be compacted, and some at a time; never the one that is written to."""
    lag_ms = settings.min_compaction_lag_ms
    # Without a lag nobody looks at times, as in Kafka: a record from the future would keep all behind it.
    newest_ms = now_ms - lag_ms if lag_ms else INT64_MAX
    old = takewhile(lambda one: one.end.offset <= upto_offset and one.max_timestamp <= newest_ms, segments[:-1])
    clean_count = bisect_right(segments, compacted_offset, key=lambda one: one.end.offset)
    return list(islice(old, clean_count + DIRTY_SEGMENTS_MAX))


def _is_worthwhile(
    segments: Sequence[Segment],
    settings: LogSettings,
    *,
    compacted_offset: Offset,
    horizon_ms: int | None,
    now_ms: int,
) -> bool:
    """Whether enough of `segments` is new, or something new is old enough, or tombstones may go."""
    if horizon_ms is not None and now_ms >= horizon_ms and segments:
        return True
    dirty = [segment for segment in segments if segment.end.offset > compacted_offset]
    if not dirty:
        return False
    if dirty[0].spans(now_ms) > settings.max_compaction_lag_ms:
        return True
    total_bytes = sum(segment.size for segment in segments)
    return sum(segment.size for segment in dirty) >= settings.min_cleanable_dirty_ratio * total_bytes


def _swap_in(
    disk: Disk, directory: str, segments: Sequence[Segment], job: CompactionJob
) -> tuple[list[Segment], list[str]]:
    """Put what the job made in the place of what it read. Returns the log's segments and files to remove."""
    replaced = {segment.base_offset for group, _ in job.results for segment in group}
    kept = [segment for segment in segments if segment.base_offset not in replaced]
    removals = []
    for group, _ in job.results:
        for segment in group:
            segment.retire()
            segment.close()
        complete_swap(disk, group[0].stem)
        for segment in group[1:]:
            removals += rename_away(disk, segment.stem)
        compacted = open_segment(disk, directory, group[0].base_offset, group[-1].end.offset)
        compacted.load_timestamp()
        kept.append(compacted)
    return sorted(kept, key=lambda segment: segment.base_offset), removals
