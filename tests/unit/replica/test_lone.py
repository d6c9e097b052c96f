"""Counting to a majority, and what one voter makes of it."""

from __future__ import annotations

import pytest

from zurau.ids import BrokerId
from zurau.replica.lone import LoneReplica
from zurau.replica.quorum.majority import committed_offset, majority


@pytest.mark.parametrize(("voters", "needed"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(voters: int, needed: int):
    assert majority(voters) == needed


@pytest.mark.parametrize(
    ("stored", "committed"),
    [([7], 7), ([7, 3], 3), ([9, 5, 1], 5), ([1, 9, 5], 5), ([4, 4, 0], 4), ([9, 8, 7, 1, 0], 7)],
)
def test_committed_is_what_a_majority_has_stored(stored: list[int], committed: int):
    assert committed_offset(stored) == committed


def single(last_epoch: int = -1, log_start_offset: int = 0) -> LoneReplica:
    return LoneReplica(BrokerId(1), [BrokerId(1)], last_epoch=last_epoch, log_start_offset=log_start_offset)


def test_a_single_voter_leads_in_the_epoch_after_its_last():
    assert single().leader_epoch == 0
    assert single(last_epoch=4).leader_epoch == 5


def test_the_high_watermark_follows_what_is_stored_and_never_goes_back():
    replica = single(log_start_offset=10)

    assert replica.stored(15)
    assert not replica.stored(12)

    assert replica.high_watermark == 15


def test_a_high_watermark_starts_where_the_log_does():
    assert single(log_start_offset=10).high_watermark == 10
