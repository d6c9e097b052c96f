"""The disk of a replica in a story: a log whose writes are safe when they are flushed, a vote, and who wrote last.

Enough of one to tell what the core does about a loss, a torn batch or a flipped bit; what a real log does about them is
tested with whole brokers (`zurau simulate`) and in tests/unit/log.
"""

from __future__ import annotations

from collections.abc import Iterable

from zurau.epochs import NO_EPOCH, EpochMark, Position
from zurau.ids import Epoch, Offset, ProducerId
from zurau.partition.producers import Producers
from zurau.records.batch import BatchHeader
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.items import Batch, Item
from zurau.replica.core.log_view import LogView
from zurau.replica.core.membership import Membership, VoterChange, Voters
from zurau.replica.core.messages import SnapshotPoint
from zurau.replica.core.recovery import Found

Write = Item | Position


class DamagedBatch(Exception):
    def __init__(self) -> None:
        super().__init__("what it has read does not match its checksum")


def end_of(item: Item) -> Offset:
    return item.next_offset if isinstance(item, Batch) else item.start_offset


def header(value: bytes, base_offset: Offset = -1) -> BatchHeader:
    """Of a record `producer.sequence`, as a producer would write it."""
    producer, _, sequence = value.partition(b".")
    return BatchHeader(base_offset, 0, 0, 2, 0, 0, 0, 0, 0, ProducerId(int(producer)), 0, int(sequence), 1)


def remember(producers: bytes, items: Iterable[Item]) -> Producers:
    """Who wrote last, from a snapshot and what follows it. What is written in stories need not have a producer."""
    known = Producers()
    known.restore(producers)
    for item in items:
        if isinstance(item, Batch) and b"." in item.data:
            known.written(header(bytes(item.data), item.base_offset), 0)
    return known


class StoredLog:
    def __init__(self, items: Iterable[Item] = (), first_offset: Offset = 0, damaged: Iterable[Offset] = ()) -> None:
        self.items = list(items)
        self.first_offset = first_offset
        #: Where batches end in which a bit has flipped.
        self.damaged = set(damaged)

    @property
    def end_offset(self) -> Offset:
        return end_of(self.items[-1]) if self.items else self.first_offset

    def write(self, it: Write) -> None:
        if isinstance(it, Position):
            self.cut(it)
        else:
            self.items.append(it)

    def cut(self, point: Position) -> None:
        while self.items and (end_of(self.items[-1]) > point.offset or self.items[-1].epoch > point.epoch):
            self.items.pop()
        self.damaged = {end for end in self.damaged if end <= point.offset}

    def cut_damaged(self, start_offset: Offset) -> None:
        """Keep what is before the first batch that does not match its checksum."""
        bad = min((end for end in self.damaged if end > start_offset), default=None)
        if bad is not None:
            ends = [end_of(item) for item in self.items]
            del self.items[ends.index(bad) :]
            self.damaged.clear()

    def read(self, offset: Offset, upto: Offset, count_max: int) -> tuple[Batch, ...]:
        found = [batch for batch in self.since(offset) if batch.next_offset <= upto][:count_max]
        if any(batch.next_offset in self.damaged for batch in found):
            raise DamagedBatch
        return tuple(found)

    def since(self, offset: Offset) -> list[Batch]:
        return [item for item in self.items if isinstance(item, Batch) and item.next_offset > offset]

    def copy(self) -> StoredLog:
        return StoredLog(self.items, self.first_offset, self.damaged)


class ReplicaDisk:
    def __init__(self, directory: str, voters: Voters) -> None:
        self.directory = directory
        self.first_voters = voters
        self.seen, self.safe = StoredLog(), StoredLog()
        #: What `seen` has and `safe` has not, in order; and up to where of it each flush goes.
        self._writes: list[Write] = []
        self._flushes: dict[int, int] = {}
        self.start_offset: Offset = 0
        self.epoch: Epoch = 0
        self.voted_for: ReplicaId | None = None
        self.high_watermark: Offset = 0
        #: How far the log was flushed, written down with every flush and lowered before a cut.
        self.flushed = Position(NO_EPOCH, 0)
        #: Where the log begins since its start has moved, and who wrote last before it.
        self._first_mark: EpochMark | None = None
        self.snapshot = Producers().snapshot(0)()

    # Writing

    def write(self, it: Write) -> None:
        self.seen.write(it)
        self._writes.append(it)

    def begin_flush(self, number: int) -> None:
        self._flushes[number] = len(self._writes)

    def end_flush(self, number: int) -> None:
        upto = self._flushes.pop(number)
        self._settle(upto)
        self.flushed = self._end()
        self._flushes = {each: place - upto for each, place in self._flushes.items()}

    def _settle(self, count: int) -> None:
        for write in self._writes[:count]:
            self.safe.write(write)
            if isinstance(write, Position):
                self.flushed = min(self.flushed, self._end())
        del self._writes[:count]

    def _end(self) -> Position:
        marks = self.view_of(self.safe).epochs.marks
        return Position(marks[-1].epoch if marks else NO_EPOCH, self.safe.end_offset)

    def crash(self, *, loses: bool) -> None:
        """The process ends, and what was written stays; or the power goes, and what was not flushed is gone."""
        self._settle(0 if loses else len(self._writes))
        self._writes, self._flushes = [], {}
        self.seen = self.safe.copy()
        self.high_watermark = min(self.high_watermark, self.seen.end_offset)

    def flip_bit(self, offset: Offset) -> None:
        for log in (self.seen, self.safe):
            log.damaged.add(offset + 1)

    def compact(self, first: Offset, last: Offset) -> None:
        for log in (self.seen, self.safe):
            log.items = [
                item for item in log.items if isinstance(item, EpochMark) or not first <= item.base_offset <= last
            ]

    def expire(self, offset: Offset) -> None:
        view, members = self.view(), self.membership()
        view.advance_start(offset)
        members.advance_start(offset)
        gone = [batch for batch in self.seen.since(self.start_offset) if batch.next_offset <= offset]
        self.snapshot = remember(self.snapshot, gone).snapshot(offset)()
        self.start_offset, self.first_voters = offset, members.first
        self._first_mark = view.epochs.marks[0]

    def restart(self, point: SnapshotPoint, snapshot: bytes) -> None:
        self.snapshot, self.first_voters, self._first_mark = snapshot, point.voters, point.mark
        self.start_offset = point.mark.start_offset
        self.flushed = Position(point.mark.epoch, self.start_offset)
        self.seen, self.safe = StoredLog((), self.start_offset), StoredLog((), self.start_offset)
        self._writes = []

    # Reading

    def recover(self) -> Found:
        """Read everything, cut off what does not match its checksum, and say what was found."""
        self.safe.cut_damaged(self.start_offset)
        whole, promised = self._end(), self.flushed
        self.seen = self.safe.copy()
        self.high_watermark = min(self.high_watermark, self.seen.end_offset)
        self.flushed = whole
        return Found(whole, promised, has_vote=True, has_snapshot=True)

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
        salvaged = self.copy(directory)
        salvaged.voted_for = None
        return salvaged

    def producers(self) -> Producers:
        return remember(self.snapshot, self.seen.since(self.start_offset))

    def view(self) -> LogView:
        return self.view_of(self.seen)

    def view_of(self, log: StoredLog) -> LogView:
        marks = [item for item in log.items if isinstance(item, EpochMark)]
        first = self._first_mark
        if first is not None:
            later = [mark for mark in marks if mark.epoch > first.epoch and mark.start_offset >= self.start_offset]
            marks = [first, *later]
        return LogView(self.start_offset, log.end_offset, marks)

    def membership(self) -> Membership:
        changes = [
            VoterChange(batch.base_offset, batch.voters)
            for batch in self.seen.since(self.start_offset)
            if batch.voters is not None
        ]
        return Membership(self.first_voters, changes)
