from __future__ import annotations

import pytest

from zurau.errors import CorruptData
from zurau.log.epochs import EpochCache, EpochEntry, parse_epochs


@pytest.fixture
def epochs() -> EpochCache:
    return EpochCache([EpochEntry(2, 0), EpochEntry(5, 10), EpochEntry(7, 25)])


def starts(epochs: EpochCache) -> list[tuple[int, int]]:
    return [tuple(entry) for entry in epochs.entries]


def test_an_empty_log_has_no_epoch():
    assert (EpochCache().last_epoch, EpochCache().end_offset_for(3, 0)) == (-1, (-1, -1))


def test_an_epoch_before_all_others_ends_where_the_first_begins_or_would_begin(epochs):
    assert EpochCache().end_offset_for(-2, 0) == (-2, 0)
    assert epochs.end_offset_for(-2, 40) == (-2, 0)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(-1, (-1, -1)), (1, (1, 0)), (2, (2, 10)), (3, (2, 10)), (5, (5, 25)), (6, (5, 25)), (7, (7, 40)), (8, (-1, -1))],
)
def test_an_epoch_ends_where_the_next_begins(epochs, asked, answer):
    assert epochs.end_offset_for(asked, 40) == answer


def test_a_reign_without_records_is_known(epochs):
    epochs.assign(8, 40)
    epochs.assign(9, 40)
    assert (epochs.end_offset_for(8, 40), epochs.end_offset_for(9, 40)) == ((8, 40), (9, 40))


def test_the_same_epoch_again_changes_nothing(epochs):
    epochs.assign(7, 30)
    assert (starts(epochs)[-1], epochs.change_count) == ((7, 25), 0)


def test_an_epoch_cannot_come_after_a_later_one(epochs):
    with pytest.raises(AssertionError):
        epochs.assign(6, 30)


@pytest.mark.parametrize(("offset", "left"), [(30, 3), (25, 3), (24, 2), (10, 2), (9, 1), (0, 1)])
def test_cutting_the_end_keeps_what_begins_at_the_cut(epochs, offset, left):
    epochs.cut_end(offset)
    assert len(epochs.entries) == left


@pytest.mark.parametrize(
    ("offset", "left"), [(0, [(2, 0), (5, 10), (7, 25)]), (12, [(5, 12), (7, 25)]), (25, [(7, 25)]), (99, [(7, 99)])]
)
def test_cutting_the_start_keeps_the_epoch_that_holds_it(epochs, offset, left):
    epochs.cut_start(offset)
    assert starts(epochs) == left


def test_the_file_is_as_kafka_writes_it(epochs):
    assert epochs.content() == b"0\n3\n2 0\n5 10\n7 25\n"
    assert starts(parse_epochs(epochs.content())) == starts(epochs)


@pytest.mark.parametrize(
    "content", [b"", b"0\n", b"1\n0\n", b"0\n2\n1 0\n", b"0\n1\n1\n", b"0\n2\n3 0\n2 5\n", b"\xff"]
)
def test_a_damaged_file_is_refused(content):
    with pytest.raises(CorruptData):
        parse_epochs(content)


def test_an_offset_belongs_to_the_last_epoch_that_began_before_it(epochs):
    assert [epochs.epoch_of(offset) for offset in (0, 9, 10, 25, 99)] == [2, 2, 5, 7, 7]
    assert EpochCache().epoch_of(3) == -1
