"""Who votes on the metadata, as brokers come and go."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from zurau.broker.metadata_voters import MetadataVoters
from zurau.ids import BrokerId, ReplicaId
from zurau.machines.controller.image import BrokerImage, ClusterImage

AFTER_MS = 300_000


def image_of(*brokers: int, away: tuple[int, ...] = ()) -> ClusterImage:
    image = ClusterImage()
    for number in brokers:
        broker = BrokerId(number)
        image.brokers[broker] = BrokerImage(broker, bytes([number] * 16), b"", 0, is_fenced=number in away)
    return image


def voters_of(image: ClusterImage, *brokers: int) -> tuple[ReplicaId, ...]:
    return tuple(ReplicaId(BrokerId(each), image.brokers[BrokerId(each)].directory_name) for each in brokers)


def ids(voters: tuple[ReplicaId, ...]) -> list[int]:
    return [voter.broker for voter in voters]


@pytest.mark.parametrize(("brokers", "count"), [(1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (6, 5), (9, 5)])
def test_one_three_or_five_vote(brokers, count):
    image = image_of(*range(1, brokers + 1))
    assert len(MetadataVoters(AFTER_MS).wanted(voters_of(image, 1)[0], voters_of(image, 1), image, 0)) == count


def test_who_is_away_keeps_its_vote_for_a_while_and_is_replaced_then():
    voters, image = MetadataVoters(AFTER_MS), image_of(1, 2, 3, 4, away=(2,))
    present = voters_of(image, 1, 2, 3)
    assert ids(voters.wanted(present[0], present, image, 0)) == [1, 2, 3]
    assert ids(voters.wanted(present[0], present, image, AFTER_MS - 1)) == [1, 2, 3]
    assert ids(voters.wanted(present[0], present, image, AFTER_MS)) == [1, 3, 4]


def test_who_is_away_keeps_its_vote_where_nobody_could_take_it():
    voters, image = MetadataVoters(AFTER_MS), image_of(1, 2, 3, away=(2,))
    for now_ms in (0, 10 * AFTER_MS):
        assert ids(voters.wanted(voters_of(image, 1)[0], voters_of(image, 1, 2, 3), image, now_ms)) == [1, 2, 3]


def test_who_has_been_there_in_between_is_not_gone():
    voters, away, back = MetadataVoters(AFTER_MS), image_of(1, 2, 3, 4, away=(2,)), image_of(1, 2, 3, 4)
    present = voters_of(back, 1, 2, 3)
    voters.wanted(present[0], present, away, 0)
    voters.wanted(present[0], present, back, AFTER_MS - 1)
    assert ids(voters.wanted(present[0], present, away, AFTER_MS + 1)) == [1, 2, 3]


def test_a_voter_whose_broker_has_another_directory_is_replaced_at_once():
    image = image_of(1, 2, 3)
    present = voters_of(image, 1, 2, 3)
    image.brokers[BrokerId(2)] = replace(image.brokers[BrokerId(2)], directory_id=b"n" * 16)
    assert MetadataVoters(AFTER_MS).wanted(present[0], present, image, 0) == voters_of(image, 1, 2, 3)
