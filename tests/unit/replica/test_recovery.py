"""What a replica may be called when it has read its disk again."""

from __future__ import annotations

import pytest

from zurau.epochs import Position
from zurau.replica.recovery import Found, keeps_its_name


@pytest.mark.parametrize(
    ("whole", "flushed"),
    [(Position(2, 10), Position(2, 10)), (Position(2, 12), Position(2, 10)), (Position(3, 10), Position(2, 10))],
    ids=["all that was flushed", "records that were not flushed as well", "a mark that was not flushed as well"],
)
def test_a_log_that_has_everything_it_promised_is_the_one_it_was(whole, flushed):
    assert keeps_its_name(Found(whole, flushed, has_vote=True, has_snapshot=True))


@pytest.mark.parametrize(
    ("whole", "flushed"),
    [(Position(2, 9), Position(2, 10)), (Position(2, 10), Position(3, 10))],
    ids=["a record is damaged", "a mark is damaged"],
)
def test_a_log_that_is_shorter_than_what_was_flushed_is_somebody_else_s(whole, flushed):
    assert not keeps_its_name(Found(whole, flushed, has_vote=True, has_snapshot=True))


@pytest.mark.parametrize(("has_vote", "has_snapshot"), [(False, True), (True, False)])
def test_without_its_vote_or_its_snapshot_a_replica_does_not_know_what_it_promised(has_vote, has_snapshot):
    end = Position(2, 10)
    assert not keeps_its_name(Found(end, end, has_vote=has_vote, has_snapshot=has_snapshot))
