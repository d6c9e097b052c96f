"""For how long answers wait for leaders that are being elected."""

from __future__ import annotations

import pytest

from zurau.broker.elections import DECIDED_WITHIN_MS, Elections
from zurau.ids import PartitionId, TopicId
from zurau.pending import start
from zurau.replica.core.roles import Role
from zurau.simulation.world import VirtualClock

METADATA, OTHER = PartitionId(TopicId(bytes(16)), 0), PartitionId(TopicId(bytes([1] * 16)), 0)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def elections(clock) -> Elections:
    return Elections(clock, METADATA)


def test_a_new_controller_has_a_moment_of_its_own(clock, elections):
    elections.begin()
    answer = start(elections.decided(lambda: False))
    clock.advance(DECIDED_WITHIN_MS - 1)
    elections.role_changed(METADATA, Role.FOLLOWER, 2)
    clock.advance(DECIDED_WITHIN_MS - 1)
    assert not answer.is_done
    clock.advance(2)
    assert answer.is_done


@pytest.mark.parametrize(("partition", "epoch"), [(OTHER, 2), (METADATA, 1)])
def test_other_replicas_and_other_roles_in_the_same_epoch_give_none(clock, elections, partition, epoch):
    elections.role_changed(METADATA, Role.PROSPECTIVE, 1)
    elections.begin()
    clock.advance(DECIDED_WITHIN_MS - 1)
    elections.role_changed(partition, Role.FOLLOWER, epoch)
    clock.advance(2)
    assert not elections.are_under_way


def test_a_controller_that_is_elected_while_nobody_is_missing_holds_up_nobody(elections):
    elections.role_changed(METADATA, Role.LEADER, 5)
    assert not elections.are_under_way
