from __future__ import annotations

import pytest

from zurau.epochs import EpochHistory, EpochMark
from zurau.errors import CorruptData
from zurau.log.epochs import encode_epochs, end_offset_for, parse_epochs


@pytest.fixture
def epochs() -> EpochHistory:
    return EpochHistory([EpochMark(2, 0), EpochMark(5, 10), EpochMark(7, 25)])


def test_an_empty_log_has_no_epoch():
    assert end_offset_for(EpochHistory(), 3, 0) == (-1, -1)


def test_an_epoch_before_all_others_ends_where_the_first_begins_or_would_begin(epochs):
    assert end_offset_for(EpochHistory(), -2, 0) == (-2, 0)
    assert end_offset_for(epochs, -2, 40) == (-2, 0)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [(-1, (-1, -1)), (1, (1, 0)), (2, (2, 10)), (3, (2, 10)), (5, (5, 25)), (6, (5, 25)), (7, (7, 40)), (8, (-1, -1))],
)
def test_an_epoch_ends_where_the_next_begins(epochs, asked, answer):
    assert end_offset_for(epochs, asked, 40) == answer


def test_an_epoch_without_records_is_known(epochs):
    epochs.add(EpochMark(8, 40))
    epochs.add(EpochMark(9, 40))
    assert (end_offset_for(epochs, 8, 40), end_offset_for(epochs, 9, 40)) == ((8, 40), (9, 40))


def test_the_file_is_as_kafka_writes_it(epochs):
    assert encode_epochs(epochs) == b"0\n3\n2 0\n5 10\n7 25\n"
    assert parse_epochs(encode_epochs(epochs)).marks == epochs.marks


@pytest.mark.parametrize(
    "content", [b"", b"0\n", b"1\n0\n", b"0\n2\n1 0\n", b"0\n1\n1\n", b"0\n2\n3 0\n2 5\n", b"\xff"]
)
def test_a_damaged_file_is_refused(content):
    with pytest.raises(CorruptData):
        parse_epochs(content)
