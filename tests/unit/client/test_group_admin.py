"""Groups from outside."""

from __future__ import annotations

import pytest

from zurau.client.errors import BrokerRefused
from zurau.client.groups.admin import GroupAdmin
from zurau.client.groups.consumer import GroupConsumer
from zurau.ids import TopicPartition


@pytest.fixture
def admin(cluster):
    return GroupAdmin(cluster)


@pytest.fixture
def group(admin, topic, unique):
    """A group without members that stands at offset 0 of one partition."""
    name = unique("group")
    admin.move(name, {TopicPartition(topic, 0): 0})
    return name


def test_a_group_that_has_offsets_is_listed(admin, group):
    (listed,) = [found for found in admin.list_groups() if found.name == group]
    assert listed.state == "Empty"


def test_a_group_can_be_moved(admin, group, topic):
    admin.move(group, {TopicPartition(topic, 1): 7})
    assert admin.offsets(group) == {TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 7}


def test_a_group_that_never_was_is_not_found(admin, unique):
    with pytest.raises(BrokerRefused, match=r"there is no such group.*`zurau group list`"):
        admin.describe_group(unique("nobody"))


def test_a_deleted_group_is_gone(admin, group):
    admin.delete_group(group)
    assert admin.offsets(group) == {}
    assert group not in [found.name for found in admin.list_groups()]


def test_members_and_their_share_are_described(admin, cluster, group, topic):
    with GroupConsumer(cluster, group, [topic]) as consumer:
        consumer.poll(0)
        described = admin.describe_group(group)
        (member,) = described.members
        assert (described.state, described.assignor) == ("Stable", "range")
        assert sorted(member.partitions) == cluster.partitions_of(topic)
        assert described.owner_of(TopicPartition(topic, 2)) == member


def test_a_group_with_members_is_neither_moved_nor_deleted(admin, cluster, group, topic):
    with GroupConsumer(cluster, group, [topic]) as consumer:
        consumer.poll(0)
        with pytest.raises(BrokerRefused, match="UNKNOWN_MEMBER_ID"):
            admin.move(group, {TopicPartition(topic, 0): 0})
        with pytest.raises(BrokerRefused, match="stop its members first"):
            admin.delete_group(group)
