"""Marks of one log: finding common ground, cutting either end."""

from __future__ import annotations

import pytest

from zurau.epochs import EpochHistory, EpochMark, Position

MARKS = [EpochMark(1, 0), EpochMark(3, 5), EpochMark(4, 5), EpochMark(7, 9)]


@pytest.mark.parametrize(
    ("epoch", "ending"),
    [(0, Position(-1, 0)), (1, Position(1, 5)), (2, Position(1, 5)), (3, Position(3, 5)), (4, Position(4, 9)),
     (6, Position(4, 9)), (7, Position(7, 12)), (9, Position(7, 12))],
)  # fmt: skip
def test_an_epoch_ends_where_the_next_one_begins(epoch, ending):
    assert EpochHistory(MARKS).ending(epoch, log_end=12) == ending


def test_a_mark_at_exactly_the_cut_stays_if_its_epoch_is_common():
    epochs = EpochHistory(MARKS)
    epochs.truncate(Position(3, 5))
    assert epochs.marks == MARKS[:2]


def test_a_mark_of_an_older_epoch_behind_the_cut_goes():
    epochs = EpochHistory(MARKS)
    epochs.truncate(Position(7, 6))
    assert epochs.marks == MARKS[:3]


def test_the_epoch_of_the_last_record_before_the_start_is_remembered():
    epochs = EpochHistory(MARKS)
    epochs.advance_start(7)
    assert epochs.marks == [EpochMark(4, 7), EpochMark(7, 9)]


def test_a_start_before_every_mark_changes_nothing():
    epochs = EpochHistory([EpochMark(2, 0)])
    epochs.advance_start(0)
    assert epochs.marks == [EpochMark(2, 0)]


def test_the_marks_after_an_epoch_are_those_that_a_follower_lacks():
    assert EpochHistory(MARKS).after(3) == tuple(MARKS[2:])


@pytest.mark.parametrize("mark", [EpochMark(7, 9), EpochMark(6, 20), EpochMark(8, 3)])
def test_a_mark_that_goes_back_is_a_defect(mark):
    with pytest.raises(AssertionError):
        EpochHistory(MARKS).add(mark)


@pytest.mark.parametrize(("offset", "epoch"), [(0, 1), (4, 1), (5, 4), (8, 4), (9, 7), (100, 7)])
def test_a_record_was_written_by_the_last_epoch_that_began_before_it(offset, epoch):
    assert EpochHistory(MARKS).epoch_of(offset) == epoch


def test_a_log_without_marks_knows_no_epoch():
    history = EpochHistory()
    assert (history.last, history.epoch_of(3), history.ending(5, 0)) == (-1, -1, Position(-1, 0))


def test_only_what_changes_the_history_counts_as_a_change():
    history = EpochHistory(MARKS)
    history.truncate(Position(7, 12))
    history.advance_start(0)
    assert history.change_count == 0
    history.truncate(Position(7, 6))
    history.add(EpochMark(8, 6))
    assert history.change_count == 2
