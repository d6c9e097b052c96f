"""Who votes, as the log says it."""

from __future__ import annotations

import pytest

from zurau.replica.core.items import Batch
from zurau.replica.core.membership import Membership, next_change


def test_a_change_holds_from_when_it_is_in_the_log_until_it_is_cut_off(ids):
    membership = Membership(ids("1a 2a"))
    membership.appended([Batch(1, 7, 1, b"", voters=ids("1a 2a 3a"))])
    assert membership.voters == ids("1a 2a 3a")
    membership.truncate(7)
    assert membership.voters == ids("1a 2a")


def test_a_change_is_settled_when_the_high_watermark_has_passed_it(ids):
    membership = Membership(ids("1a"))
    membership.appended([Batch(1, 7, 1, b"", voters=ids("1a 2a"))])
    assert not membership.is_settled(7)
    assert membership.is_settled(8)


def test_voters_are_known_when_the_change_that_made_them_is_gone(ids):
    membership = Membership(ids("1a"))
    membership.appended([Batch(1, 3, 1, b"", voters=ids("1a 2a")), Batch(1, 6, 1, b"", voters=ids("2a"))])
    membership.advance_start(5)
    assert membership.first == ids("1a 2a")
    assert membership.voters == ids("2a")
    membership.advance_start(5)
    assert membership.first == ids("1a 2a")


def test_adding_a_voter_twice_changes_nothing(ids):
    assert Membership(ids("1a 2a")).with_change(ids("2a")[0], None) == ids("1a 2a")


def test_two_changes_at_once_are_a_defect(ids):
    with pytest.raises(AssertionError):
        Membership(ids("1a")).with_change(*ids("2a 1a"))


@pytest.mark.parametrize(
    ("voters", "wanted", "caught_up", "change"),
    [("1a 2a 3a", "1a 2a 3a", "1a 2a 3a", None),
     # a dead one leaves when its replacement could join, and before it does
     ("1a 2a 3a", "1a 2a 3b", "1a 2a", None),
     ("1a 2a 3a", "1a 2a 3b", "1a 2a 3b", "-3a"),
     ("1a 2a", "1a 2a 3b", "1a 2a 3b", "+3b"),
     # one that is alive leaves after its replacement has joined
     ("1a 2a 3a", "1a 2a 4a", "1a 2a 3a 4a", "+4a"),
     ("1a 2a 3a 4a", "1a 2a 4a", "1a 2a 3a 4a", "-3a"),
     # and not while the rest needs it, because one of them is dead
     ("1a 2a 3a", "2a 3a", "1a 2a 3a", "-1a"),
     ("1a 2a 3a", "2a 3a", "1a 2a", None),
     ("1a 2a 3a", "2a", "1a 2a", "-3a"),
     # growing in pairs
     ("1a", "1a 2a 3a", "1a 2a", None),
     ("1a", "1a 2a 3a", "1a 2a 3a", "+2a"),
     ("1a 2a", "1a 2a 3a", "1a 2a 3a", "+3a"),
     ("1a 2a 3a", "1a 2a 3a 4a 5a", "1a 2a 3a 4a", None),
     ("1a 2a 3a", "1a 2a 3a 4a 5a", "1a 2a 3a 4a 5a", "+4a"),
     # two or four only for who wants them
     ("1a", "1a 2a", "1a 2a", "+2a"),
     ("1a 2a 3a", "1a 2a", "1a 2a", "-3a")],
)  # fmt: skip
def test_voters_change_one_at_a_time_dead_ones_first_and_in_pairs(ids, voters, wanted, caught_up, change):
    found = next_change(ids(voters), ids(wanted), lambda replica: replica in ids(caught_up))
    expected = (
        None if change is None else (None, ids(change[1:])[0]) if change[0] == "-" else (ids(change[1:])[0], None)
    )
    assert found == expected


def test_who_voted_before_the_last_change_is_known(ids):
    membership = Membership(ids("1a 2a 3a"))
    assert membership.before_last_change == ids("1a 2a 3a")
    for offset, voters in ((3, "1a 2a"), (5, "1a")):
        membership.appended([Batch(1, offset, 1, b"", ids(voters))])
    assert membership.before_last_change == ids("1a 2a")
