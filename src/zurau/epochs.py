"""Which leader epoch wrote which part of a log, and where a log ends.

A new leader's first act is to write its *epoch mark*: from this offset on, it is this epoch that writes. A mark takes
up no offset, so it cannot be rebuilt from the batches: it is log data, stored, replicated, flushed and truncated in its
order among them.

    mark 1 | batch 0..2 | batch 3 | mark 2 | mark 4 | batch 4..5        ends at Position(epoch=4, offset=6)

A *position* is the epoch of the last mark and the end offset, compared by epoch first: of two logs, the one with the
larger position holds everything that is committed if either does (Raft's "at least as up-to-date", section 5.4.1).

Two logs that hold the same mark agree on everything before it, because only one leader writes in an epoch and a
follower takes a leader's log in its order. So the largest epoch that both have, and the smaller of the two offsets
where it ends, is where they diverge (KIP-101). One comparison may not be enough: after truncating, a follower fetches
again and may be told of an earlier point (KIP-279).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from zurau.ids import Epoch, Offset

NO_EPOCH: Epoch = -1


class Position(NamedTuple):
    epoch: Epoch
    offset: Offset

    def __str__(self) -> str:
        return f"{self.offset}@{self.epoch}"


class EpochMark(NamedTuple):
    """From this offset on it is this epoch that writes. It has no width."""

    epoch: Epoch
    start_offset: Offset

    def __str__(self) -> str:
        return f"mark {self.epoch} at {self.start_offset}"


class EpochHistory:
    """The marks of one log, in order. Invariant: epochs rise, start offsets do not fall."""

    __slots__ = ("change_count", "last", "marks")

    def __init__(self, marks: Iterable[EpochMark] = ()) -> None:
        self.marks: list[EpochMark] = list(marks)
        #: The epoch of the last mark.
        self.last: Epoch = self.marks[-1].epoch if self.marks else NO_EPOCH
        #: Counts changes, so that whoever stores the history knows whether what is stored is still true.
        self.change_count = 0

    def add(self, mark: EpochMark) -> None:
        assert mark.epoch > self.last, f"{mark} cannot follow epoch {self.last}"
        assert not self.marks or mark.start_offset >= self.marks[-1].start_offset, f"{mark} begins too early"
        self._replace([*self.marks, mark])

    def after(self, epoch: Epoch) -> tuple[EpochMark, ...]:
        """The marks of later epochs."""
        return () if epoch >= self.last else tuple(self.marks[self._following(epoch) :])

    def epoch_of(self, offset: Offset) -> Epoch:
        """The epoch in which the record at `offset` was, or will be, written."""
        following = bisect_right(self.marks, offset, key=lambda mark: mark.start_offset)
        return self.marks[following - 1].epoch if following else NO_EPOCH

    def ending(self, epoch: Epoch, log_end: Offset) -> Position:
        """The largest epoch up to `epoch` that wrote here, and where it ends."""
        if epoch >= self.last:
            return Position(self.last, log_end)
        following = self._following(epoch)
        known = self.marks[following - 1].epoch if following else NO_EPOCH
        return Position(known, self.marks[following].start_offset)

    def truncate(self, point: Position) -> None:
        """Forget marks of later epochs and marks behind the offset. A mark of an epoch up to the point's at exactly its
        offset is still common to both logs. By offset alone, the mark of a leader that nobody followed would survive
        its own truncation, and the log would pass for one of a later epoch."""
        self._replace([mark for mark in self.marks if mark.epoch <= point.epoch and mark.start_offset <= point.offset])

    def advance_start(self, offset: Offset) -> None:
        """Records below `offset` are gone. The epoch of the last of them stays: a log without records still has a
        position, and without it the replica would lose its place in an election."""
        before = [mark for mark in self.marks if mark.start_offset < offset]
        if before:
            self._replace([EpochMark(before[-1].epoch, offset), *self.marks[len(before) :]])

    def restart(self, mark: EpochMark) -> None:
        """The log begins anew here, without records: the epoch is that of the last one before."""
        self._replace([mark])

    def _following(self, epoch: Epoch) -> int:
        return bisect_right(self.marks, epoch, key=lambda mark: mark.epoch)

    def _replace(self, marks: list[EpochMark]) -> None:
        if marks != self.marks:
            self.marks = marks
            self.last = marks[-1].epoch if marks else NO_EPOCH
            self.change_count += 1
