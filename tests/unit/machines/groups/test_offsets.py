"""Committing and fetching offsets."""

from __future__ import annotations

import pytest

from zurau.ids import TopicPartition
from zurau.machines.groups.commands import CommittedOffset, FetchOffsets, NewOffset, OffsetsCommitted
from zurau.settings import INT64_MAX, MIB
from zurau.wire.kafka.error_codes import ErrorCode

ORDERS = TopicPartition("orders", 0)


def test_a_member_commits_and_fetches(stage):
    stage.form("a")
    assert stage.commit("orders", 5, "a", stage.generation) == OffsetsCommitted({ORDERS: ErrorCode.NONE})
    assert stage.committed() == {"orders": 5}


def test_everything_that_was_committed_comes_back(stage):
    offsets = {ORDERS: NewOffset(5, leader_epoch=3, metadata="bis hierhin ✓")}
    stage.commit("", 0, offsets=offsets)
    fetched = stage.outcome(stage.ask(FetchOffsets("readers", (ORDERS,))))
    assert fetched.offsets == {ORDERS: CommittedOffset(5, 3, "bis hierhin ✓", stage.now_ms)}


def test_an_offset_may_be_kept_for_as_long_as_a_number_can_say(stage):
    stage.commit("orders", 5, retention_ms=INT64_MAX)
    assert stage.committed() == {"orders": 5}


def test_a_partition_without_an_offset_has_none(stage):
    fetched = stage.outcome(stage.ask(FetchOffsets("no such group", (ORDERS,))))
    assert fetched.offsets == {ORDERS: None}


def test_a_group_without_members_takes_commits_from_outside(stage):
    stage.commit("orders", 5)
    assert stage.committed() == {"orders": 5}
    assert stage.describe().state == "Empty"


def test_a_group_whose_members_left_takes_commits_from_outside(stage):
    stage.form("a")
    stage.leave("a")
    stage.commit("orders", 5)
    assert stage.committed() == {"orders": 5}


def test_a_group_with_members_takes_no_commits_from_outside(stage):
    stage.form("a")
    assert stage.commit("orders", 5) is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.committed() == {}


def test_a_commit_of_an_older_generation_is_refused(stage):
    stage.form("a")
    assert stage.commit("orders", 5, "a", stage.generation - 1) is ErrorCode.ILLEGAL_GENERATION


def test_a_commit_of_a_stranger_is_refused(stage):
    stage.form("a")
    assert stage.commit("orders", 5, "x", stage.generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_with_a_generation_to_a_group_that_does_not_exist_is_refused(stage):
    assert stage.commit("orders", 5, "a", 1) is ErrorCode.ILLEGAL_GENERATION


def test_members_may_commit_what_they_give_up_while_others_join(stage):
    stage.form("a")
    stage.join("b")
    stage.commit("orders", 5, "a", stage.generation)
    assert stage.committed() == {"orders": 5}


def test_between_the_barriers_nobody_commits(stage):
    stage.join("a")
    assert stage.commit("orders", 5, "a", stage.generation) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_counts_as_a_sign_of_life(stage):
    stage.form("a")
    stage.advance(9_000)
    stage.commit("orders", 5, "a", stage.generation)
    stage.advance(9_000)
    assert stage.state == "Stable"


@pytest.mark.parametrize(("length", "code"), [(8, ErrorCode.NONE), (9, ErrorCode.OFFSET_METADATA_TOO_LARGE)])
def test_long_metadata_is_refused_for_its_partition_only(stage_with, length, code):
    stage = stage_with(offset_metadata_bytes_max=8)
    other = TopicPartition("orders", 1)
    reply = stage.commit("", 0, offsets={ORDERS: NewOffset(5, metadata="x" * length), other: NewOffset(6)})
    assert reply == OffsetsCommitted({ORDERS: code, other: ErrorCode.NONE})


def test_old_simple_consumers_keep_offsets_under_the_empty_name(stage):
    stage.commit("orders", 5, group_id="")
    fetched = stage.outcome(stage.ask(FetchOffsets("", (ORDERS,))))
    assert fetched.offsets[ORDERS].offset == 5


def test_commits_are_refused_for_the_time_being_when_memory_is_used_up(stage_with):
    stage = stage_with(groups_memory_bytes_max=MIB, offset_metadata_bytes_max=30_000)
    names = [TopicPartition("orders", number) for number in range(60)]
    long, short = NewOffset(1, metadata="n" * 30_000), NewOffset(2)
    stage.commit("", 0, offsets=dict.fromkeys(names[:30], long))
    refused = stage.commit("", 0, offsets=dict.fromkeys(names[30:], long))
    assert refused is ErrorCode.COORDINATOR_NOT_AVAILABLE
    stage.commit("", 0, offsets=dict.fromkeys(names[:30], short))
    assert len(stage.commit("", 0, offsets=dict.fromkeys(names[30:], long)).codes) == 30
