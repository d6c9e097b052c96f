"""A replica's disk: a log whose writes reach the platter in order, and late, a file for the vote, and a snapshot.

Every item carries a checksum of everything up to it, so that two logs are compared at a glance, and stays known when
retention has removed it. After a crash the log is what was flushed and some beginning of what was written since; a
batch that was torn is one that is not there, as recovery finds by its checksum. How far the log was flushed is written
beside it, with every flush: so recovery can tell a batch that was torn from one that was damaged later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple
from zlib import crc32

from zurau.epochs import NO_EPOCH, EpochMark, Position
from zurau.ids import Epoch, Offset
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.items import Batch, Item
from zurau.replica.core.log_view import LogView
from zurau.replica.core.membership import Membership, VoterChange, Voters
from zurau.replica.core.messages import SnapshotPoint
from zurau.replica.core.recovery import Found
from zurau.simulation.cluster.snapshots import EMPTY, Snapshot, follow


class DamagedBatch(Exception):
    """What was read does not match its checksum."""

    def __init__(self) -> None:
        super().__init__("what it has read does not match its checksum")


@dataclass(slots=True)
class StoredLog:
    """Items, where each ends, and the checksum up to it."""

    items: list[Item] = field(default_factory=list)
    ends: list[Offset] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)
    first_sum: int = 0
    first_offset: Offset = 0
    #: Items in which a bit has flipped, by their place in the list.
    damaged: set[int] = field(default_factory=set)
    #: Items that compaction has removed, by their place: they stay for the checkers, and nobody reads them again.
    removed: set[int] = field(default_factory=set)

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

    def write(self, it: Write) -> None:
        """An item to append, one that was never here, or a point to cut at."""
        if isinstance(it, Position):
            self.cut(it)
        elif isinstance(it, Removed):
            self.removed.add(len(self.items))
            self.append(it.batch)
        else:
            self.append(it)

    def cut(self, point: Position) -> None:
        keep = len(self.items)
        while keep and (self.ends[keep - 1] > point.offset or self.items[keep - 1].epoch > point.epoch):
            keep -= 1
        self._keep(keep)

    def _keep(self, count: int) -> None:
        del self.items[count:], self.ends[count:], self.sums[count:]
        self.damaged = {index for index in self.damaged if index < count}
        self.removed = {index for index in self.removed if index < count}

    def sum_at(self, offset: Offset) -> int | None:
        """The checksum up to the last batch before `offset`; None when the log does not come so far."""
        if offset == self.first_offset:
            return self.first_sum
        at = bisect_left(self.ends, offset)
        if at == len(self.ends) or self.ends[at] != offset:
            return None
        return self.sums[at]

    def read(self, offset: Offset, upto: Offset, count_max: int) -> tuple[Batch, ...]:
        """Raises `DamagedBatch`."""
        found: list[Batch] = []
        for index in range(bisect_right(self.ends, offset), len(self.items)):
            item = self.items[index]
            if self.ends[index] > upto or len(found) == count_max:
                break
            if isinstance(item, Batch) and index not in self.removed:
                if index in self.damaged:
                    raise DamagedBatch
                found.append(item)
        return tuple(found)

    def since(self, offset: Offset) -> list[Batch]:
        """The batches from there on, for whoever follows the log."""
        first = bisect_right(self.ends, offset)
        return [item for item in self.items[first:] if isinstance(item, Batch)]

    def cut_damaged(self, start_offset: Offset) -> None:
        """Keep what is before the first item that does not match its checksum; what retention removed is not read."""
        bad = [index for index in self.damaged if self.ends[index] > start_offset]
        if bad:
            self._keep(min(bad))

    def copy(self) -> StoredLog:
        lists = (list(self.items), list(self.ends), list(self.sums))
        return StoredLog(*lists, self.first_sum, self.first_offset, set(self.damaged), set(self.removed))


def as_bytes(item: Item) -> bytes:
    if isinstance(item, EpochMark):
        return b"mark %d %d" % item
    voters = b"" if item.voters is None else repr(item.voters).encode()
    return b"%d %d %d %b %b" % (item.epoch, item.base_offset, item.count, bytes(item.data), voters)


class Removed(NamedTuple):
    """A batch that another replica had and compacted away before this one could fetch it."""

    batch: Batch


Write = Item | Position | Removed


class ReplicaDisk:
    def __init__(self, directory: str, voters: Voters) -> None:
        self.directory = directory
        self.first_voters = voters
        self.seen = StoredLog()
        self.safe = StoredLog()
        #: What was safe before a snapshot took its place; for the checkers.
        self.replaced = StoredLog()
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
        #: What was before the start.
        self.snapshot: Snapshot = EMPTY
        #: How far the log was flushed, written down with every flush and lowered before a cut.
        self.flushed = Position(NO_EPOCH, 0)
        self.vote_is_damaged = False
        self.snapshot_is_damaged = False
        #: Only the process dies at the next crash: what the kernel has is written later.
        self.survives_in_cache = False

    # Writing

    def append(self, item: Item, compacted: Mapping[Offset, Batch] | None = None) -> None:
        """A batch may begin behind the end, where compaction has removed what was between; and nowhere else."""
        begins = item.base_offset if isinstance(item, Batch) else item.start_offset
        while compacted and self.seen.end_offset < begins and self.seen.end_offset in compacted:
            self._write(Removed(compacted[self.seen.end_offset]))
        self._write(item)

    def _write(self, it: Write) -> None:
        self.seen.write(it)
        self._writes.append(it)

    def compact(self, offset: Offset, choose: Callable[[], bool]) -> list[Batch]:
        """Compaction removes some of what is committed and flushed below `offset`; returns what."""
        last = max((index for index, item in enumerate(self.seen.items) if isinstance(item, Batch)), default=0)
        gone = [
            index
            for index, item in enumerate(self.seen.items[:last])
            if isinstance(item, Batch) and item.voters is None and item.base_offset >= self.start_offset
            if item.next_offset <= offset and index not in self.seen.removed | self.seen.damaged and choose()
        ]
        for log in (self.seen, self.safe):
            log.removed.update(gone)
        return [item for index in gone if isinstance(item := self.seen.items[index], Batch)]

    def cut(self, point: Position) -> None:
        self._write(point)

    def begin_flush(self, number: int) -> None:
        self._flush_marks[number] = len(self._writes)

    def end_flush(self, number: int) -> None:
        upto = self._flush_marks.pop(number)
        self._settle(upto)
        self.flushed = self._end_of(self.safe)
        self._flush_marks = {each: mark - upto for each, mark in self._flush_marks.items()}

    def crash(self, rng: Random, *, loses: bool = True) -> None:
        loses, self.survives_in_cache = loses and not self.survives_in_cache, False
        kept = rng.randint(0, len(self._writes)) if loses else len(self._writes)
        self.has_lost = kept < len(self._writes)
        self._settle(kept)
        self._writes = []
        self._flush_marks = {}
        self.seen = self.safe.copy()
        self.high_watermark = min(self.high_watermark, self.seen.end_offset)

    def restart(self, point: SnapshotPoint, checksum: int, snapshot: Snapshot = EMPTY) -> None:
        self.replaced = self.safe
        self.snapshot = snapshot
        self.snapshot_is_damaged = False
        self.flushed = Position(point.mark.epoch, point.mark.start_offset)
        self.seen = StoredLog(first_sum=checksum, first_offset=point.mark.start_offset)
        self.safe = self.seen.copy()
        self._writes = []
        self.start_offset = point.mark.start_offset
        self.first_voters = point.voters
        self._first_mark = point.mark

    def expire(self, offset: Offset) -> None:
        """Retention: items stay here for the checkers, nobody else sees them again."""
        view = self.view()
        view.advance_start(offset)
        members = self.membership()
        members.advance_start(offset)
        gone = [batch for batch in self.seen.since(self.start_offset) if batch.next_offset <= offset]
        self.snapshot = follow(self.snapshot, gone)
        self.start_offset = offset
        self._first_mark = view.epochs.marks[0]
        self.first_voters = members.first

    def before_the_last_write(self) -> StoredLog:
        """What was to be seen then. What is safe may still have what an earlier cut took away."""
        log = self.safe.copy()
        for write in self._writes[:-1]:
            log.write(write)
        return log

    def _settle(self, count: int) -> None:
        for write in self._writes[:count]:
            self.safe.write(write)
            if isinstance(write, Position):
                self.flushed = min(self.flushed, self._end_of(self.safe))
        del self._writes[:count]

    def _end_of(self, log: StoredLog) -> Position:
        first = self._first_mark
        epoch = log.items[-1].epoch if log.items else NO_EPOCH
        return Position(max(epoch, first.epoch if first is not None else NO_EPOCH), log.end_offset)

    # Going bad

    @property
    def is_damaged(self) -> bool:
        """Somewhere that would be read again."""
        in_log = any(self.safe.ends[index] > self.start_offset for index in self.safe.damaged)
        return in_log or self.vote_is_damaged or self.snapshot_is_damaged

    def flip_bit(self, rng: Random) -> str | None:
        """Damage something that was flushed; returns what."""
        if rng.random() < 0.15:
            self.vote_is_damaged = True
            return "its vote"
        if self.start_offset > 0 and rng.random() < 0.3:
            self.snapshot_is_damaged = True
            return "its snapshot"
        first = bisect_right(self.safe.ends, self.start_offset)
        both = range(first, min(len(self.safe.items), len(self.seen.items)))
        able = [index for index in both if self.safe.sums[index] == self.seen.sums[index]]
        if not able:
            return None
        # The end of the log is where a damaged batch is most easily taken for a torn one.
        index = rng.choice([able[-1], rng.choice(able)])
        self.safe.damaged.add(index)
        self.seen.damaged.add(index)
        return str(self.safe.items[index])

    def heal(self) -> None:
        """It was not so bad."""
        self.safe.damaged, self.seen.damaged = set(), set()
        self.vote_is_damaged = self.snapshot_is_damaged = False

    # Reading

    def recover(self) -> Found:
        """Read everything, cut off what does not match its checksum, and say what was found."""
        self.safe.cut_damaged(self.start_offset)
        whole, promised = self._end_of(self.safe), self.flushed
        self.seen = self.safe.copy()
        self.high_watermark = min(self.high_watermark, self.seen.end_offset)
        self.flushed = whole
        return Found(whole, promised, has_vote=not self.vote_is_damaged, has_snapshot=not self.snapshot_is_damaged)

    def copy(self, directory: str) -> ReplicaDisk:
        """What is flushed here, in another directory or in this one at another time."""
        copied = ReplicaDisk(directory, self.first_voters)
        copied.safe, copied.seen = self.safe.copy(), self.safe.copy()
        copied.start_offset, copied._first_mark, copied.snapshot = self.start_offset, self._first_mark, self.snapshot
        copied.epoch, copied.voted_for, copied.flushed = self.epoch, self.voted_for, self.flushed
        copied.high_watermark = min(self.high_watermark, self.safe.end_offset)
        return copied

    def salvage(self, directory: str) -> ReplicaDisk:
        """A new replica that begins with what is whole of an old one's log, and has promised nothing to anybody."""
        if self.snapshot_is_damaged:
            return ReplicaDisk(directory, self.first_voters)
        salvaged = self.copy(directory)
        salvaged.voted_for = None
        if self.vote_is_damaged:
            salvaged.epoch = 0
        return salvaged

    def view(self) -> LogView:
        """What recovery finds."""
        marks = [item for item in self.seen.items if isinstance(item, EpochMark)]
        first = self._first_mark
        if first is not None:
            later = [mark for mark in marks if mark.epoch > first.epoch and mark.start_offset >= self.start_offset]
            marks = [first, *later]
        return LogView(self.start_offset, self.seen.end_offset, marks)

    @property
    def open_cuts(self) -> list[Position]:
        """Cuts that may come undone in a crash, or not."""
        return [write for write in self._writes if isinstance(write, Position)]

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
