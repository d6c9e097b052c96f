"""Plans of where replicas should be."""

from __future__ import annotations

from collections import Counter

import pytest

from zurau.client.cluster.metadata import BrokerInfo
from zurau.client.plans import balanced, with_factor, without
from zurau.ids import Address, BrokerId, TopicPartition


def brokers(**racks: str | None):
    ids = [BrokerId(int(name[1:])) for name in racks]
    return {each: BrokerInfo(each, Address("h", 1), racks[f"b{each}"]) for each in ids}


def assigned(*replicas):
    return {TopicPartition("t", index): each for index, each in enumerate(replicas)}


FOUR = brokers(b1=None, b2=None, b3=None, b4=None)


def test_what_a_broker_has_goes_to_whoever_has_the_fewest():
    plan = without(assigned((1, 2), (2, 3), (3, 1)), BrokerId(1), {each: FOUR[each] for each in (2, 3, 4)})
    assert plan == {TopicPartition("t", 0): (4, 2), TopicPartition("t", 2): (3, 4)}


def test_a_broker_cannot_go_that_nobody_could_replace():
    with pytest.raises(ValueError, match="too few brokers"):
        without(assigned((1, 2)), BrokerId(1), {BrokerId(2): FOUR[2]})


def test_more_replicas_go_to_racks_that_have_none():
    racks = brokers(b1="north", b2="north", b3="south")
    assert with_factor(assigned((1,)), 2, racks) == {TopicPartition("t", 0): (1, 3)}


def test_of_fewer_replicas_the_first_stay():
    assert with_factor(assigned((3, 1, 2)), 1, FOUR) == {TopicPartition("t", 0): (3,)}
    assert with_factor(assigned((3, 1, 2)), 3, FOUR) == {}


def test_there_are_no_more_replicas_than_brokers():
    with pytest.raises(ValueError, match="there are 4"):
        with_factor(assigned((1,)), 5, FOUR)


def test_a_new_broker_gets_its_share_of_replicas_and_of_leaders():
    now = assigned(*[(1, 2), (2, 3), (3, 1)] * 4)
    after = now | balanced(now, FOUR)
    load = Counter(each for replicas in after.values() for each in replicas)
    led = Counter(replicas[0] for replicas in after.values())
    assert max(load.values()) - min(load.values()) <= 1
    assert max(led.values()) - min(led.values()) <= 2
    assert set(load) == {1, 2, 3, 4}
    assert all(len(set(replicas)) == 2 for replicas in after.values())


def test_what_is_even_stays():
    assert balanced(assigned((1, 2), (2, 3), (3, 4), (4, 1)), FOUR) == {}


def test_replicas_of_brokers_that_are_not_there_are_moved():
    assert balanced(assigned((9, 1)), FOUR) == {TopicPartition("t", 0): (2, 1)}
