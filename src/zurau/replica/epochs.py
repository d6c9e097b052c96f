"""The marks of one log, in order: which epoch wrote what.

Two logs that hold the same mark agree on everything before it, because only one leader wrote in an epoch and a follower
takes a leader's items in their order. So the largest mark that both have, and the smaller of the two offsets where that
epoch ends, is where they part (KIP-101). One comparison may not be enough: after cutting, a follower asks again
(KIP-279).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from zurau.ids import Epoch, Offset
from zurau.replica.position import NO_EPOCH, EpochMark, Position


class Epochs:
    """Invariant: epochs rise, start offsets do not fall."""

    __slots__ = ("marks",)

    def __init__(self, marks: Iterable[EpochMark] = ()) -> None:
        self.marks: list[EpochMark] = list(marks)

    @property
    def last(self) -> Epoch:
        return self.marks[-1].epoch if self.marks else NO_EPOCH

    def add(self, mark: EpochMark) -> None:
        assert mark.epoch > self.last, f"{mark} cannot follow epoch {self.last}"
        assert not self.marks or mark.start_offset >= self.marks[-1].start_offset, f"{mark} begins too early"
        self.marks.append(mark)

    def after(self, epoch: Epoch) -> tuple[EpochMark, ...]:
        """The marks of later epochs."""
        return tuple(self.marks[self._following(epoch) :])

    def ending(self, epoch: Epoch, log_end: Offset) -> Position:
        """The largest epoch up to `epoch` that wrote here, and where it ends."""
        following = self._following(epoch)
        known = self.marks[following - 1].epoch if following else NO_EPOCH
        end = self.marks[following].start_offset if following < len(self.marks) else log_end
        return Position(known, end)

    def cut_end(self, point: Position) -> None:
        """Forget marks of later epochs and marks further on; one at exactly this offset is still common ground."""
        self.marks = [mark for mark in self.marks if mark.epoch <= point.epoch and mark.start_offset <= point.offset]

    def cut_start(self, offset: Offset) -> None:
        """Records below `offset` are gone. The epoch of the last of them stays: a log without records still has a
        position, and without it the replica would lose its place in an election."""
        before = [mark for mark in self.marks if mark.start_offset < offset]
        if before:
            self.marks = [EpochMark(before[-1].epoch, offset), *self.marks[len(before) :]]

    def _following(self, epoch: Epoch) -> int:
        return bisect_right(self.marks, epoch, key=lambda mark: mark.epoch)
