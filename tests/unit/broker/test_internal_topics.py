"""Topics that brokers make for themselves have more replicas as brokers come."""

from __future__ import annotations

import pytest

from zurau.broker.internal_topics import larger_assignments
from zurau.ids import BrokerId, TopicId
from zurau.machines.controller.dynamic import DRAIN, EVERYTHING
from zurau.machines.controller.image import ISR, REPLICATION_MODE, BrokerImage, ClusterImage, PartitionImage, TopicImage


def image_of(brokers: int, **rest: object) -> ClusterImage:
    known = [BrokerImage(BrokerId(each), bytes([each] * 16), bytes(16), each, **rest) for each in range(1, brokers + 1)]
    return ClusterImage(brokers={each.broker_id: each for each in known})


def topic_of(*replicas: tuple[int, ...], mode: str = "quorum", **rest: object) -> TopicImage:
    partitions = [
        PartitionImage(index, tuple(map(BrokerId, each)), tuple("d" for _ in each), **rest)
        for index, each in enumerate(replicas)
    ]
    return TopicImage("offsets", TopicId(bytes(16)), tuple(partitions), {REPLICATION_MODE: mode})


def grown(image: ClusterImage, topic: TopicImage, factor: int = 3) -> dict[int, tuple[int, ...]]:
    return dict(larger_assignments(image, topic, factor))


@pytest.mark.parametrize(("brokers", "factor"), [(1, 1), (2, 1), (3, 3), (5, 3)])
def test_voting_replicas_grow_from_one_to_three_at_once(brokers, factor):
    after = grown(image_of(brokers), topic_of((1,), (1,)))
    assert {len(replicas) for replicas in after.values()} == ({factor} if factor > 1 else set())


def test_replicas_that_do_not_vote_are_two_when_there_are_two_brokers():
    assert grown(image_of(2), topic_of((1,), mode=ISR)) == {0: (1, 2)}


def test_replicas_and_preferred_leaders_are_spread_and_nobody_loses_one():
    after = grown(image_of(5), topic_of(*[(1,)] * 8))
    held = [broker for replicas in after.values() for broker in replicas]
    assert [held.count(each) for each in range(1, 6)] == [8, 4, 4, 4, 4]
    assert len({replicas[0] for replicas in after.values()}) > 2


def test_what_has_enough_or_is_on_its_way_is_left_alone():
    assert grown(image_of(4), topic_of((1, 2, 3), (2, 3, 4, 1))) == {}
    assert grown(image_of(3), topic_of((1,), target=(BrokerId(1), BrokerId(2)))) == {}


def test_a_broker_that_is_away_or_about_to_go_gets_none():
    image = image_of(4)
    image.broker_configs["2"] = {DRAIN: EVERYTHING}
    assert sorted(grown(image, topic_of((1,)))[0]) == [1, 3, 4]
    assert grown(image_of(3, is_fenced=True), topic_of((1,))) == {}


def test_other_racks_come_first():
    image = image_of(4)
    racks = {1: "a", 2: "a", 3: "b", 4: "c"}
    for each, rack in racks.items():
        known = image.brokers[BrokerId(each)]
        image.brokers[BrokerId(each)] = BrokerImage(known.broker_id, known.directory_id, bytes(16), 1, rack=rack)
    assert sorted(grown(image, topic_of((1,)))[0]) == [1, 3, 4]
