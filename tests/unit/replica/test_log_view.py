"""What a replica knows of its own log."""

from __future__ import annotations

import pytest

from zurau.epochs import EpochMark, Position
from zurau.replica.core.items import Batch
from zurau.replica.core.log_view import LogView


def batch(epoch: int, base_offset: int, count: int = 1) -> Batch:
    return Batch(epoch, base_offset, count, b"")


def log_of(*items: EpochMark | Batch) -> LogView:
    log = LogView()
    for item in items:
        log.append(item)
    return log


def test_marks_and_batches_are_merged_in_the_order_of_their_offsets():
    log = LogView()
    items = log.merge([EpochMark(1, 0), EpochMark(2, 2), EpochMark(3, 2)], [batch(1, 0, 2), batch(3, 2)])
    assert [str(item) for item in items] == [
        "mark 1 at 0",
        "batch 0..1@1",
        "mark 2 at 2",
        "mark 3 at 2",
        "batch 2..2@3",
    ]
    assert log.position == Position(3, 3)


def test_a_mark_behind_the_last_batch_of_an_answer_waits_for_the_next_answer():
    log = LogView()
    log.merge([EpochMark(1, 0), EpochMark(2, 5)], [batch(1, 0, 2)])
    assert log.position == Position(1, 2)


def test_what_is_appended_during_a_flush_is_not_flushed_by_it():
    log = log_of(EpochMark(1, 0), batch(1, 0))
    number = log.begin_flush()
    log.append(batch(1, 1))
    assert log.begin_flush() is None
    log.flush_done(number)
    assert log.flushed == Position(1, 1)
    assert not log.is_flushed


def test_a_flush_says_nothing_about_what_replaced_the_end_meanwhile():
    log = log_of(EpochMark(1, 0), batch(1, 0), batch(1, 1))
    number = log.begin_flush()
    log.truncate(Position(1, 1))
    log.append(batch(1, 1))
    log.flush_done(number)
    assert log.flushed == Position(1, 1)


def test_a_flush_of_before_a_restart_of_the_log_is_forgotten():
    log = log_of(EpochMark(1, 0), batch(1, 0))
    number = log.begin_flush()
    log.restart(EpochMark(4, 9))
    log.append(batch(4, 9))
    log.flush_done(number)
    assert log.flushed == Position(4, 9)


def test_a_log_that_begins_in_the_middle_of_a_batch_begins_with_all_of_it():
    log = log_of()
    log.restart(EpochMark(4, 9))
    log.append(batch(4, 8, 2))
    assert (log.start_offset, log.position) == (9, Position(4, 10))


def test_a_batch_before_the_end_of_a_log_that_holds_something_breaks_it():
    log = log_of(EpochMark(1, 0), batch(1, 0))
    with pytest.raises(AssertionError, match="in a log that ends at 1"):
        log.append(batch(1, 0))


@pytest.mark.parametrize(
    ("theirs", "diverging"),
    [(Position(-1, 0), None), (Position(1, 2), None), (Position(1, 3), None), (Position(1, 4), Position(1, 3)),
     (Position(2, 3), Position(1, 3)), (Position(3, 5), None), (Position(3, 6), Position(3, 5)),
     (Position(4, 3), Position(3, 5))],
)  # fmt: skip
def test_another_log_parts_from_this_one_after_the_last_epoch_that_both_have(theirs, diverging):
    log = log_of(EpochMark(1, 0), batch(1, 0, 3), EpochMark(3, 3), batch(3, 3, 2))
    assert log.where_diverging(theirs) == diverging


@pytest.mark.parametrize("item", [batch(1, 0), batch(2, 1), EpochMark(2, 0)])
def test_an_item_that_does_not_continue_the_log_is_a_defect(item):
    with pytest.raises(AssertionError):
        log_of(EpochMark(1, 0), batch(1, 0)).append(item)


def test_a_batch_behind_what_compaction_has_removed_continues_the_log():
    log = log_of(EpochMark(1, 0), batch(1, 0))
    items = log.merge([EpochMark(2, 5)], [batch(1, 3), batch(2, 9, 2)])
    assert [str(item) for item in items] == ["batch 3..3@1", "mark 2 at 5", "batch 9..10@2"]
    assert log.position == Position(2, 11)


def test_a_start_outside_of_the_log_is_a_defect():
    with pytest.raises(AssertionError):
        log_of(EpochMark(1, 0), batch(1, 0)).advance_start(2)
