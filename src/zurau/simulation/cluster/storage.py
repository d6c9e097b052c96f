"""A replica's disk: a log whose writes reach the platter in order, and late, and a file for the vote.

Every item carries a checksum of everything up to it, so that two logs are compared at a glance, and stays known when
retention has removed it. After a crash the log is what was flushed and some beginning of what was written since; a
batch that was torn is one that is not there, as recovery finds by its checksum.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from random import Random
from zlib import crc32

from zurau.ids import Epoch, Offset
from zurau.replica.identity import ReplicaId
from zurau.replica.log_view import LogView
from zurau.replica.membership import Membership, VoterChange, Voters
from zurau.replica.messages import SnapshotPoint
from zurau.replica.position import Batch, EpochMark, Item, Position


@dataclass(slots=True)
class StoredLog:
    """Items, where each ends, and the checksum up to it."""

    items: list[Item] = field(default_factory=list)
    ends: list[Offset] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)
    first_sum: int = 0
    first_offset: Offset = 0

    @property
    def end_offset(self) -> Offset:
        return self.ends[-1] if self.ends else self.first_offset

    @property
    def last_sum(self) -> int:
        return self.sums[-1] if self.sums else self.first_sum

    def append(self, item: Item) -> None:
        self.ends.append(item.next_offset if isinstance(item, Batch) else item.start_offset)
        self.sums.append(crc32(as_bytes(item), self.last_sum))
        self.items.append(item)

    def cut(self, point: Position) -> None:
        keep = len(self.items)
        while keep and (self.ends[keep - 1] > point.offset or self.items[keep - 1].epoch > point.epoch):
            keep -= 1
        del self.items[keep:], self.ends[keep:], self.sums[keep:]

    def sum_at(self, offset: Offset) -> int | None:
        """The checksum up to the last batch before `offset`; None when the log does not come so far."""
        if offset == self.first_offset:
            return self.first_sum
        at = bisect_left(self.ends, offset)
        if at == len(self.ends) or self.ends[at] != offset:
            return None
        return self.sums[at]

    def read(self, offset: Offset, upto: Offset, count_max: int) -> tuple[Batch, ...]:
        first = bisect_right(self.ends, offset)
        found = [item for item in self.items[first : first + 2 * count_max] if isinstance(item, Batch)]
        return tuple(batch for batch in found[:count_max] if batch.next_offset <= upto)

    def copy(self) -> StoredLog:
        return StoredLog(list(self.items), list(self.ends), list(self.sums), self.first_sum, self.first_offset)


def as_bytes(item: Item) -> bytes:
    if isinstance(item, EpochMark):
        return b"mark %d %d" % item
    voters = b"" if item.voters is None else repr(item.voters).encode()
    return b"%d %d %d %b %b" % (item.epoch, item.base_offset, item.count, item.data, voters)


Write = Item | Position


class ReplicaDisk:
    def __init__(self, directory: str, voters: Voters) -> None:
        self.directory = directory
        self.first_voters = voters
        self.seen = StoredLog()
        self.safe = StoredLog()
        #: What `seen` has and `safe` has not, in order.
        self._writes: list[Write] = []
        self._flush_marks: dict[int, int] = {}
        self.start_offset: Offset = 0
        self.epoch: Epoch = 0
        self.voted_for: ReplicaId | None = None
        #: Written down now and then; what is committed stays committed, so an old one is only less than is known.
        self.high_watermark: Offset = 0
        #: What the kernel has not written yet was lost.
        self.has_lost = False
        #: Where the log begins since retention or a snapshot moved its start.
        self._first_mark: EpochMark | None = None

    # Writing

    def append(self, item: Item) -> None:
        self.seen.append(item)
        self._writes.append(item)

    def cut(self, point: Position) -> None:
        self.seen.cut(point)
        self._writes.append(point)

    def begin_flush(self, number: int) -> None:
        self._flush_marks[number] = len(self._writes)

    def end_flush(self, number: int) -> None:
        upto = self._flush_marks.pop(number)
        self._settle(upto)
        self._flush_marks = {each: mark - upto for each, mark in self._flush_marks.items()}

    def crash(self, chance: Random, *, loses: bool = True) -> None:
        kept = chance.randint(0, len(self._writes)) if loses else len(self._writes)
        self.has_lost = kept < len(self._writes)
        self._settle(kept)
        self._writes = []
        self._flush_marks = {}
        self.seen = self.safe.copy()
        self.high_watermark = min(self.high_watermark, self.seen.end_offset)

    def restart(self, point: SnapshotPoint, checksum: int) -> None:
        self.seen = StoredLog(first_sum=checksum, first_offset=point.mark.start_offset)
        self.safe = self.seen.copy()
        self._writes = []
        self.start_offset = point.mark.start_offset
        self.first_voters = point.voters
        self._first_mark = point.mark

    def expire(self, offset: Offset) -> None:
        """Retention: items stay here for the checkers, nobody else sees them again."""
        view = self.view()
        view.cut_start(offset)
        members = self.membership()
        members.cut_start(offset)
        self.start_offset = offset
        self._first_mark = view.epochs.marks[0]
        self.first_voters = members.first

    def _settle(self, count: int) -> None:
        for write in self._writes[:count]:
            if isinstance(write, Position):
                self.safe.cut(write)
            else:
                self.safe.append(write)
        del self._writes[:count]

    # Reading

    def view(self) -> LogView:
        """What recovery finds."""
        marks = [item for item in self.seen.items if isinstance(item, EpochMark)]
        first = self._first_mark
        if first is not None:
            later = [mark for mark in marks if mark.epoch > first.epoch and mark.start_offset >= self.start_offset]
            marks = [first, *later]
        return LogView(self.start_offset, self.seen.end_offset, marks)

    def has_safe_mark(self, epoch: Epoch) -> bool:
        """The mark of an epoch, or of one that a later log begins with, is flushed."""
        first = self._first_mark
        if first is not None and first.epoch == epoch:
            return True
        # Whatever an epoch wrote stands behind its mark.
        return next((item.epoch == epoch for item in reversed(self.safe.items) if item.epoch <= epoch), False)

    def membership(self) -> Membership:
        changes = [
            VoterChange(item.base_offset, item.voters)
            for item in self.seen.items
            if isinstance(item, Batch) and item.voters is not None and item.base_offset >= self.start_offset
        ]
        return Membership(self.first_voters, changes)
