"""A replica on a log: its effects, carried out on the smallest log that keeps `Storage`, and that log read again."""

from __future__ import annotations

from collections.abc import Sequence

from zurau.epochs import EpochHistory, EpochMark, Position
from zurau.replica.core.effects import AdvanceStart, Append, Effect, RestartLog, StartFlush, Truncate
from zurau.replica.core.events import Event, Flushed, RecordsWritten, TimePassed
from zurau.replica.core.items import Batch, Item
from zurau.replica.core.log_view import LogView
from zurau.replica.core.messages import SnapshotPoint
from zurau.replica.core.storage import Storage


class MemoryLog:
    def __init__(self) -> None:
        self.start_offset = 0
        self.epochs = EpochHistory()
        self.position = self.flushed = Position(-1, 0)
        self.batches: list[Batch] = []

    def append(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, EpochMark):
                self.epochs.add(item)
                self.position = Position(item.epoch, item.start_offset)
            else:
                self.batches.append(item)
                self.position = Position(item.epoch, item.next_offset)

    def truncate(self, point: Position) -> None:
        self.epochs.truncate(point)
        self.batches = [batch for batch in self.batches if batch.next_offset <= point.offset]
        self.position = Position(self.epochs.last, point.offset)
        self.flushed = min(self.flushed, self.position)

    def flush(self) -> None:
        self.flushed = self.position

    def advance_start(self, offset: int) -> None:
        self.epochs.advance_start(offset)
        self.start_offset = offset
        self.batches = [batch for batch in self.batches if batch.next_offset > offset]

    def restart(self, mark: EpochMark) -> None:
        self.epochs = EpochHistory([mark])
        self.start_offset, self.batches = mark.start_offset, []
        self.position = self.flushed = Position(mark.epoch, mark.start_offset)

    def read(self, from_offset: int, upto_offset: int, max_bytes: int) -> Sequence[Batch]:
        found: list[Batch] = []
        for batch in self.batches:
            if from_offset < batch.next_offset <= upto_offset and (max_bytes > 0 or not found):
                found.append(batch)
                max_bytes -= len(batch.data)
        return found


def carry_out(effects: Sequence[Effect], log: Storage) -> list[Flushed]:
    flushes: list[Flushed] = []
    for effect in effects:
        match effect:
            case Append(items):
                log.append(items)
            case Truncate(point):
                log.truncate(point)
            case AdvanceStart(offset):
                log.advance_start(offset)
            case RestartLog(point):
                log.restart(point.mark)
            case StartFlush(number):
                log.flush()
                flushes.append(Flushed(number))
    return flushes


def test_a_log_that_keeps_the_protocol_gives_a_replica_back_what_it_had(make):
    log, replica = MemoryLog(), make(voters="1a")

    def happen(event: Event) -> None:
        for flushed in carry_out(replica.step(event, 0), log):
            replica.step(flushed, 0)

    happen(TimePassed())
    for data in (b"xy", b"z"):
        log.append([Batch(replica.epoch, replica.log.end_offset, len(data), data)])
        happen(RecordsWritten(len(data)))
    assert replica.high_watermark == 3
    again = LogView(log.start_offset, log.position.offset, log.epochs.marks)
    assert (again.position, again.flushed) == (replica.log.position, replica.log.flushed)
    assert [batch.data for batch in log.read(0, 3, 1)] == [b"xy"]


def test_the_effects_that_shorten_a_log_leave_the_log_that_the_replica_knows(ids):
    log, view = MemoryLog(), LogView()
    items = (EpochMark(1, 0), Batch(1, 0, 2, b"a"), EpochMark(3, 2), Batch(3, 2, 1, b"b"))
    for item in items:
        view.append(item)
    carry_out([Append(items), Truncate(Position(2, 2)), AdvanceStart(1)], log)
    view.truncate(Position(2, 2))
    view.advance_start(1)
    assert (log.position, log.epochs.marks, log.start_offset) == (view.position, view.epochs.marks, view.start_offset)
    point = SnapshotPoint(EpochMark(5, 9), ids("1a"))
    carry_out([RestartLog(point)], log)
    view.restart(point.mark)
    assert (log.position, log.flushed, log.epochs.marks) == (view.position, view.flushed, view.epochs.marks)
