"""Bringing a log back: which segments there are, where each one ends, and what of it can be believed.

An entry of an offset index proves that everything before it was flushed (see flushing). So whatever lies before the
last one on disk is believed, and from there on every batch is checked (see scan): at the end of each segment, which is
little after a clean stop. What is found wrong is one of two things:

- a *torn tail*: it lies above everything that was flushed, as the proof and the broker's journal say (`LastKnown`). A
  crash leaves that behind; the log is cut there. If the machine did not restart, only the last write can be torn. The
  rules are a table in `verdicts.py`.
- *damage*: anything else, and anything at all after a clean stop. It is never cut. A segment that ends before the next
  one begins has lost its end (see compaction for why compacted ones do not look so); a log that ends below what is
  known to have been in it goes on where that ended, in a new segment, so that no offset is given out twice.

Indexes that are missing or contradict their log are made again. Every cut and every damaged
range is told in the broker's log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from zurau.epochs import NO_EPOCH, EpochHistory, EpochMark
from zurau.errors import CorruptData, DiskFault
from zurau.ids import Epoch, Offset
from zurau.log.batch_file import SegmentEnd
from zurau.log.checkpoint import Checkpoint
from zurau.log.damage import ADVICE, DamagedRange, gap_reason
from zurau.log.epoch_recovery import load_epochs
from zurau.log.known_damage import FILE_NAME, restore_damage, save_damage
from zurau.log.last_known import LastKnown
from zurau.log.scan import BadStretch, Scan, highest_offset
from zurau.log.segment import Segment
from zurau.log.segment_checks import (
    ends_at,
    header_at,
    indexes_are_right,
    is_copy,
    last_entries_are_right,
    proven_offset,
    walked_end,
)
from zurau.log.segment_files import SegmentFiles
from zurau.log.settings import LogSettings
from zurau.log.verdicts import Evidence, Verdict, judge
from zurau.ports import Disk

log = logging.getLogger("zurau.log")


class Recovery:
    """Finds the segments of one directory. Blocks, all of it: it is how a log is opened."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        settings: LogSettings,
        saved: Checkpoint | None,
        last_known: LastKnown | None,
        *,
        clean: bool,
        start_is_lost: bool = False,
    ) -> None:
        """`start_is_lost`: it was written down where the log starts, and cannot be read."""
        self._disk = disk
        self._directory = directory
        self._settings = settings
        self._files = SegmentFiles(
            disk,
            directory,
            saved.start_offset if saved is not None else 0,
            start_is_exact=saved is not None and (clean or not saved.is_old),
        )
        self._start_offset = None if start_is_lost else saved.start_offset if saved is not None else 0
        self._last_known = last_known
        self._clean = clean
        #: Everything below was flushed. Grows when the indexes are looked at.
        self._flushed_offset = last_known.flushed_offset if last_known else 0
        self.epochs = EpochHistory()
        #: The last one that the file has; later ones are in the broker's journal only.
        self.saved_epoch: Epoch = NO_EPOCH
        #: Where the oldest epoch begins, if that was written down: no later than the log.
        self.epochs_start: Offset = 0
        #: Those of the batches that were checked.
        self._checked_epochs: list[EpochMark] = []
        self.segments: list[Segment] = []
        #: The number of the last one that holds anything.
        self._last_filled = 0
        #: Everything in them is known to have been flushed.
        self._is_safe = True

    @property
    def leftovers(self) -> list[str]:
        """Files that nobody needs any more."""
        return self._files.leftovers

    @property
    def expired_mark(self) -> str | None:
        """A file that shows that the first segments have expired, though the checkpoint does not say so yet."""
        return self._files.expired_mark

    def run(self, names: list[str]) -> None:
        """Fill `segments` (at least one), `epochs` and `leftovers`, given the names in the directory."""
        self.segments = list(self._files.load(self._files.put_away(names)))
        self._sort_out_overlaps()
        self._check()
        self._go_on_behind_what_is_known()
        restore_damage(self._disk, self._directory, self.segments)
        damage = [one for segment in self.segments for one in segment.damage]
        if damage or FILE_NAME in names:
            save_damage(self._disk, self._directory, damage)
        noted = self._last_known.marks if self._last_known is not None else ()
        self.epochs, self.epochs_start, self.saved_epoch = load_epochs(
            self._disk, self._directory, self.segments, self._checked_epochs, noted, self._start_offset
        )

    # Which of them count

    def _sort_out_overlaps(self) -> None:
        """What begins before the end of the segment before it was merged into that one by a compaction, or is a copy.

        If neither, the offsets of one of them are wrong, and the check will tell.
        """
        bases = {segment.base_offset for segment in self.segments}
        kept: list[Segment] = []
        for segment in self.segments:
            if not (last_entries_are_right(segment) if self._clean else indexes_are_right(segment)):
                segment.drop_indexes()
            end = walked_end(kept[-1]) if kept else 0
            if segment.base_offset >= end:
                kept.append(segment)
            elif end in bases:
                log.info("%s was merged into %s by a compaction, and goes", segment.path, kept[-1].path)
                self._files.leave_over(segment)
            elif walked_end(segment) <= end and is_copy(segment, kept[-1]):
                self._files.put_aside(segment, f"its records are in {kept[-1].path} too")
            else:
                kept.append(segment)
        self.segments = kept

    # What is in them

    def _check(self) -> None:
        """Go through what is not proven of each segment; cut a torn tail, and find damage."""
        self._last_filled = max((number for number, segment in enumerate(self.segments) if segment.size), default=0)
        proven = max((number for number, segment in enumerate(self.segments) if segment.has_proof), default=0)
        if self.segments[proven].has_proof:
            self._flushed_offset = max(self._flushed_offset, proven_offset(self.segments[proven]))
        for number, segment in enumerate(self.segments):
            following = self.segments[number + 1] if number + 1 < len(self.segments) else None
            is_believed = self._clean or number < proven
            try:
                is_whole = self._check_segment(number, following, is_believed=is_believed)
            except CorruptData:
                raise
            except DiskFault as fault:
                if following is None:
                    raise
                self._is_unreadable(segment, following.base_offset, fault)
                is_whole, self._is_safe = True, False
            if not is_whole:
                self._cut_after(number)
                break
        if not self._clean and not self._is_safe:
            self._disk.flush_directory(self._directory)

    def _check_segment(self, number: int, next_one: Segment | None, *, is_believed: bool) -> bool:
        """Returns False if the log ends in this segment, whatever comes later."""
        segment = self.segments[number]
        following = next_one.base_offset if next_one is not None else None
        if is_believed and following is not None and segment.has_proof and ends_at(segment, following):
            segment.load_timestamp()
            segment.end = SegmentEnd(following, segment.size)
            return True
        size, start = segment.size, segment.indexed_bytes
        is_end = number >= self._last_filled
        damage: list[DamagedRange] = []
        is_whole = True
        for stretch in self._noted(segment, following):
            if self._is_torn(
                stretch.first_offset,
                is_believed=is_believed,
                good_follows=stretch.next_offset is not None,
                is_last_write=is_end and stretch.is_cut_short,
            ):
                self._cut(segment, stretch)
                is_whole = False
                break
            damage.append(segment.damaged_range(stretch, self._end_of_damage(stretch, following)))
            segment.end = SegmentEnd(damage[-1].next_offset, stretch.end_position)
        if is_whole and following is not None and segment.end.offset < following:
            if self._is_torn(segment.end.offset, is_believed=is_believed):
                is_whole = False
            else:
                damage.append(self._missing(segment, following, gap_reason(following)))
        if following is not None and is_whole:
            segment.end = SegmentEnd(following, size)
            segment.index_time()
            segment.write_indexes()
        if is_whole and not damage and segment.end.offset <= self._flushed_offset:
            return True  # all of it was flushed, and its name too: thousands of logs need no flush each at a start
        self._is_safe = False
        if size > start and not self._clean:
            # Not flushed alone: should a flush have failed before, it would say that what was dropped then is safe.
            segment.file.write_again(start)
            segment.file.flush()
        self._tell(segment, damage)
        return is_whole

    def _noted(self, segment: Segment, following: Offset | None) -> Iterator[BadStretch]:
        """Take account of every good batch after the last index entry; what lies between them is returned."""
        size, start = segment.size, segment.indexed_bytes
        first = header_at(segment, start)
        expected, epoch = (first.base_offset, first.leader_epoch) if start and first else (segment.base_offset, -1)
        if not self._clean:
            segment.drop_unproven_times()
        segment.begin_at_index()
        scan = Scan(segment.file, size, self._below(segment, following)) if size else None
        for stretch in scan.stretches(start, expected, epoch) if scan else ():
            if isinstance(stretch, BadStretch):
                yield stretch
                continue
            segment.note(stretch.header, stretch.position, self._settings.index_interval_bytes)
            if not self._checked_epochs or stretch.header.leader_epoch > self._checked_epochs[-1].epoch:
                self._checked_epochs.append(EpochMark(stretch.header.leader_epoch, stretch.header.base_offset))

    def _below(self, segment: Segment, following: Offset | None) -> Offset:
        closed = self._last_known.closed_offset if self._last_known and self._clean else None
        if following is None and closed is not None and closed > segment.base_offset:
            following = closed
        return highest_offset(segment.base_offset, following)

    def _end_of_damage(self, stretch: BadStretch, following: Offset | None) -> Offset:
        if stretch.next_offset is not None:
            return stretch.next_offset
        # Of a bad end it is not known how many records it held: one at least.
        if following is not None:
            return following
        return max(stretch.claimed_offset, stretch.first_offset + 1, self._known_end)

    @property
    def _known_end(self) -> Offset:
        """The log reached at least so far once."""
        closed = self._last_known.closed_offset if self._last_known is not None else None
        return max(self._flushed_offset, closed or 0)

    def _is_torn(self, offset: Offset, *, is_believed: bool, **signs: bool) -> bool:
        """Whether a crash explains that the log is bad, or ends, at `offset`."""
        evidence = Evidence(offset, is_believed, self._flushed_offset, self._last_known, **signs)
        return judge(evidence) is Verdict.TORN

    def _missing(self, segment: Segment, next_offset: Offset, reason: str) -> DamagedRange:
        end = segment.end
        return DamagedRange(self._directory, end.offset, next_offset, segment.path, end.position, end.position, reason)

    def _is_unreadable(self, segment: Segment, following: Offset, fault: DiskFault) -> None:
        size = segment.size
        segment.end = SegmentEnd(following, size)
        whole = DamagedRange(self._directory, segment.base_offset, following, segment.path, 0, size, str(fault))
        self._tell(segment, [whole])

    def _tell(self, segment: Segment, damage: list[DamagedRange]) -> None:
        segment.damage = tuple(
            sorted((*segment.damage, *(one for one in damage if one.size_bytes or one.next_offset > one.first_offset)))
        )
        for one in damage:
            log.error("%s; %s", one, ADVICE)

    # The end

    def _cut(self, segment: Segment, stretch: BadStretch) -> None:
        """Cut a torn tail off the file."""
        log.warning(
            "%s: the end is torn: %d bytes are cut off %s from %d on (%s); %s",
            self._directory,
            segment.size - stretch.position
            if segment.size > stretch.position
            else stretch.end_position - stretch.position,
            segment.path,
            stretch.position,
            stretch.reason,
            self._what_was_flushed(),
        )
        segment.file.truncate(stretch.position)

    def _what_was_flushed(self) -> str:
        if self._last_known is None:
            return "how far it was flushed is not written down, so it cannot be said whether any of it was acknowledged"
        return f"all that was flushed, up to offset {self._flushed_offset}, is there"

    def _cut_after(self, number: int) -> None:
        end = self.segments[number].end.offset
        for segment in self.segments[number + 1 :]:
            if segment.size:
                log.warning(
                    "%s: %s, %d bytes from offset %d on, goes: the log ends at %d before it; %s",
                    self._directory,
                    segment.path,
                    segment.size,
                    segment.base_offset,
                    end,
                    self._what_was_flushed(),
                )
            self._files.leave_over(segment)
        self.segments = self.segments[: number + 1]

    def _go_on_behind_what_is_known(self) -> None:
        """Begin a new segment if the last one has a damaged end, or ends before what is known to have been there."""
        last = self.segments[-1]
        known_end = self._known_end
        if last.end.offset < known_end:
            missing = self._missing(last, known_end, f"everything below offset {known_end} was flushed once")
            self._tell(last, [missing])
        elif not last.damage or last.damage[-1].next_offset < last.end.offset:
            return
        if not last.size:
            self._files.make_file(last)
        base = max(known_end, last.end.offset)
        last.end = SegmentEnd(base, last.size)
        last.index_time()
        last.write_indexes()
        self.segments.append(Segment(self._disk, self._directory, SegmentEnd(base, 0), base_offset=base))
