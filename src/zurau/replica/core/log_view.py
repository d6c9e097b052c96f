"""What a replica knows of its own log: where it begins and ends, whose marks it holds, how much of it is flushed.

No bytes: the log itself is the shell's. Whatever changes here is also said as an effect, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zurau.epochs import EpochHistory, EpochMark, Position
from zurau.ids import Offset
from zurau.replica.core.items import Batch, Item


class LogView:
    __slots__ = ("_flush_count", "_flush_limit", "_flushing", "epochs", "flushed", "position", "start_offset")

    def __init__(self, start_offset: Offset = 0, end_offset: Offset = 0, marks: Iterable[EpochMark] = ()) -> None:
        self.start_offset = start_offset
        self.epochs = EpochHistory(marks)
        #: Where it ends. Invariant: the epoch is that of the last mark.
        self.position = Position(self.epochs.last, end_offset)
        #: Invariant: a position of this log, not behind its end. What is read back at a start was flushed.
        self.flushed = self.position
        self._flush_count = 0
        self._flushing: Position | None = None
        #: What was truncated since the flush began does not count, whatever is flushed.
        self._flush_limit: Position | None = None

    @property
    def end_offset(self) -> Offset:
        return self.position.offset

    @property
    def is_flushed(self) -> bool:
        return self.flushed == self.position

    # Growing

    def append(self, item: Item) -> None:
        epoch, end = self.position
        if isinstance(item, EpochMark):
            assert item.start_offset >= end, f"{item} in a log that ends at {end}"
            self.epochs.add(item)
            self.position = Position(item.epoch, item.start_offset)
            return
        # Not always where the log ended: what was between may have been removed by compaction.
        if item.base_offset < end:
            self._assert_holds_the_start(item)
        assert item.epoch == epoch, f"{item} after the mark of epoch {self.epochs.last}"
        self.position = Position(epoch, item.base_offset + item.count)

    def _assert_holds_the_start(self, batch: Batch) -> None:
        """Records may be deleted up to the middle of a batch. A log that begins there begins with all of that batch."""
        assert self.start_offset == self.end_offset < batch.next_offset, (
            f"{batch} in a log that ends at {self.end_offset}"
        )

    def wrote(self, count: int) -> None:
        """A leader's own batch, at the end."""
        epoch, end = self.position
        self.position = Position(epoch, end + count)

    def merge(self, marks: Sequence[EpochMark], batches: tuple[Batch, ...]) -> tuple[Item, ...]:
        """Append a leader's marks and batches in the order in which that leader wrote them; returns them so.

        The leader names all its later marks, whatever part of its batches fits into one answer: marks that begin
        behind the last batch come with a later answer.
        """
        if not marks:
            for batch in batches:
                self.append(batch)
            return batches
        items: list[Item] = []
        waiting = list(marks)
        for batch in batches:
            while waiting and waiting[0].start_offset <= batch.base_offset:
                items.append(waiting.pop(0))
            items.append(batch)
        end = batches_end(items, self.end_offset)
        items += [mark for mark in waiting if mark.start_offset <= end]
        for item in items:
            self.append(item)
        return tuple(items)

    # Getting safe

    def begin_flush(self) -> int | None:
        """The number of a flush to start now; None when one is under way or nothing is left to flush."""
        if self._flushing is not None or self.flushed == self.position:
            return None
        self._flush_count += 1
        self._flushing = self.position
        self._flush_limit = None
        return self._flush_count

    def flush_done(self, number: int, upto: Position | None = None) -> None:
        if number == self._flush_count and self._flushing is not None:
            # A truncation may have come in between, and what was appended since is not what was flushed.
            covered = self._flushing if upto is None else upto
            if self._flush_limit is not None:
                covered = min(covered, self._flush_limit)
            self.flushed = max(self.flushed, covered)
            self._flushing = None

    # Shrinking

    def truncation_point(self, diverging: Position) -> Position:
        """Where to truncate so that nothing is left that the other log does not have up to `diverging`."""
        mine = self.epochs.ending(diverging.epoch, self.end_offset)
        return Position(diverging.epoch, min(mine.offset, diverging.offset))

    def truncate(self, point: Position) -> None:
        self.epochs.truncate(point)
        self.position = Position(self.epochs.last, point.offset)
        self.flushed = min(self.flushed, self.position)
        if self._flushing is not None:
            limit = self._flush_limit
            self._flush_limit = self.position if limit is None else min(limit, self.position)

    def advance_start(self, offset: Offset) -> None:
        assert self.start_offset <= offset <= self.end_offset, f"{offset} is not in this log"
        self.epochs.advance_start(offset)
        self.start_offset = offset

    def restart(self, mark: EpochMark) -> None:
        """Begin anew behind what a snapshot holds: no records, but the epoch of the last one before."""
        self.epochs = EpochHistory([mark])
        self.start_offset = mark.start_offset
        self.position = Position(mark.epoch, mark.start_offset)
        self.flushed = self.position
        self._flushing = None

    # Comparing

    def where_diverging(self, theirs: Position) -> Position | None:
        """Where another log with that end parts from this one; None when it is a beginning of this one."""
        common = self.epochs.ending(theirs.epoch, self.end_offset)
        return None if common.epoch == theirs.epoch and common.offset >= theirs.offset else common


def batches_end(items: Iterable[Item], otherwise: Offset) -> Offset:
    end = otherwise
    for item in items:
        if isinstance(item, Batch):
            end = item.next_offset
    return end
