"""Marks of epochs that the broker's journal has need no flush of a file of their own."""

from __future__ import annotations

import pytest

from zurau.epochs import EpochMark
from zurau.log import flushing
from zurau.log.last_known import LastKnown

FILE = "leader-epoch-checkpoint"


@pytest.fixture
def note(bench):
    """A leader begins, and the journal notes that."""

    def note(epoch: int) -> EpochMark:
        mark = EpochMark(epoch, bench.log.end_offset)
        bench.log.mark(mark)
        bench.log.marks_noted(bench.log.epochs.change_count)
        return mark

    return note


def killed(bench, *noted: EpochMark):
    known = LastKnown(bench.log.flushed_offset, None, kept_unflushed=False, marks=noted)
    return bench.open(clean=False, last_known=known)


def test_a_first_flush_writes_no_file_of_epochs_and_a_start_after_a_kill_needs_none(bench, note, caplog):
    mark = note(3)
    bench.fill(5, epoch=3)
    bench.flush()
    assert FILE not in bench.names()
    assert killed(bench, mark).epochs.marks == [mark]
    assert FILE not in bench.names()
    assert not caplog.text


def test_a_clean_stop_writes_the_file(bench, note):
    mark = note(3)
    bench.fill(5, epoch=3)
    bench.flush()
    bench.log.close()
    assert bench.open().epochs.marks == [mark]
    assert FILE in bench.names()


@pytest.mark.parametrize(("more", "is_written"), [(0, False), (1, True)])
def test_of_many_marks_the_journal_does_not_keep_all(bench, note, more, is_written):
    for epoch in range(1, flushing.NOTED_MARKS_MAX + more + 1):
        note(epoch)
        bench.fill(1, epoch=epoch)
    bench.flush()
    assert (FILE in bench.names()) is is_written
    assert len(bench.log.unsaved_marks()) == (0 if is_written else flushing.NOTED_MARKS_MAX)


def test_marks_that_begin_later_than_the_log_are_not_believed_alone(bench, note, caplog):
    bench.fill(5, epoch=1)
    bench.flush()
    later = note(2)
    bench.fill(5, epoch=2)
    bench.flush()
    bench.disk.remove(f"logs/t-0/{FILE}")
    assert killed(bench, later).epochs.marks == [EpochMark(1, 0), later]
    assert "made again from the batches" in caplog.text
