"""Describing and listing groups."""

from __future__ import annotations

from zurau.machines.groups.commands import DescribedMember, GroupDescription, GroupList, ListedGroup, ListGroups
from zurau.wire.kafka.error_codes import ErrorCode


def test_a_stable_group_is_described_with_what_its_members_own(stage):
    stage.form("a")
    metadata = stage.join_command("a").protocols[0].metadata
    member = DescribedMember("a", None, "client", "/127.0.0.1", metadata, b"a")
    assert stage.describe() == GroupDescription("readers", "Stable", "consumer", "range", (member,))


def test_during_a_rebalance_nobody_is_said_to_own_anything(stage):
    stage.form("a")
    stage.join("b")
    description = stage.describe()
    assert (description.state, description.protocol) == ("PreparingRebalance", "")
    assert {member.assignment for member in description.members} == {b""}


def test_a_group_that_does_not_exist_is_not_described(stage):
    assert stage.describe() is ErrorCode.GROUP_ID_NOT_FOUND


def test_all_groups_are_listed_whether_they_have_members_or_not(stage):
    stage.form("a")
    stage.commit("orders", 5, group_id="simple")
    listed = (ListedGroup("readers", "consumer", "Stable"), ListedGroup("simple", "", "Empty"))
    assert stage.outcome(stage.ask(ListGroups())) == GroupList(listed)
