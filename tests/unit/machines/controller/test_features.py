"""Levels of features: raised when all brokers support it, and in the way of whoever does not."""

from __future__ import annotations

import pytest

from zurau.errors import Refused, ReleaseTooOld
from zurau.ids import BrokerId
from zurau.machines.controller import features
from zurau.machines.controller.commands import FeatureUpdate, UnregisterBroker, UpdateFeatures
from zurau.machines.controller.features import ZURAU_VERSION, Levels, level_of, supported_ranges
from zurau.machines.controller.image import ClusterImage, FeatureRange
from zurau.machines.controller.records import FeatureLevelChanged, decode_record, encode_record
from zurau.machines.controller.replay import apply_record
from zurau.machines.controller.snapshot import freeze

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


@pytest.fixture(autouse=True)
def later_release(monkeypatch):
    """These tests run on a release that has three levels."""
    monkeypatch.setitem(features.SUPPORTED, ZURAU_VERSION, Levels(1, 3, 1))


@pytest.fixture
def cluster(cluster_of):
    return cluster_of(0)


def register(cluster, broker, highest=None, lowest=1):
    """`highest`: None if its release does not know levels."""
    supported = () if highest is None else (FeatureRange(ZURAU_VERSION, lowest, highest),)
    cluster.register(broker, features=supported)


def update(cluster, level, way=UPGRADE, feature=ZURAU_VERSION, *, validate_only=False):
    cluster.ask(UpdateFeatures([FeatureUpdate(feature, level, way)], validate_only))
    return level_of(cluster.image, ZURAU_VERSION)


def test_a_cluster_begins_with_the_highest_levels_of_the_broker_that_forms_it(cluster):
    register(cluster, 1, highest=2)
    assert level_of(cluster.image, ZURAU_VERSION) == 2
    register(cluster, 2, highest=3)
    assert level_of(cluster.image, ZURAU_VERSION) == 2


def test_a_cluster_that_was_formed_before_there_were_levels_stays_as_it_is(cluster):
    register(cluster, 1)
    register(cluster, 1, highest=3)
    assert cluster.image.feature_levels == {}
    assert level_of(cluster.image, ZURAU_VERSION) == 1


def test_a_level_is_raised_when_the_last_broker_supports_it(cluster):
    register(cluster, 1)
    register(cluster, 2)
    register(cluster, 1, highest=3)
    with pytest.raises(Refused, match="broker 2 supports level 1 only"):
        update(cluster, 3)
    register(cluster, 2, highest=2)
    with pytest.raises(Refused, match="broker 2 supports levels 1 to 2"):
        update(cluster, 3)
    assert update(cluster, 2) == 2
    register(cluster, 2, highest=3)
    assert update(cluster, 3) == 3


def test_a_broker_that_is_not_there_counts_until_it_is_unregistered(cluster):
    register(cluster, 1, highest=2)
    register(cluster, 2, highest=2)
    register(cluster, 1, highest=3)
    cluster.lose_sight_of(2)
    with pytest.raises(Refused, match="broker 2 supports"):
        update(cluster, 3)
    cluster.ask(UnregisterBroker(BrokerId(2)))
    assert update(cluster, 3) == 3


@pytest.mark.parametrize("highest", [None, 1, 2])
def test_a_broker_of_an_older_release_is_not_let_in(cluster, highest):
    register(cluster, 1, highest=3)
    with pytest.raises(Refused, match=r"level 3 of zurau\.version, and broker 2 supports"):
        register(cluster, 2, highest=highest)
    assert BrokerId(2) not in cluster.image.brokers


def test_a_broker_that_has_given_up_a_low_level_is_not_let_in(cluster):
    register(cluster, 1, highest=2)
    with pytest.raises(Refused, match="broker 2 supports level 3 only"):
        register(cluster, 2, lowest=3, highest=3)


def test_what_is_only_tried_changes_nothing(cluster):
    register(cluster, 1, highest=2)
    register(cluster, 1, highest=3)
    assert update(cluster, 3, validate_only=True) == 2
    with pytest.raises(Refused):
        update(cluster, 4, validate_only=True)


@pytest.mark.parametrize("way", [SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_a_level_is_lowered_when_that_is_asked_for(cluster, way):
    register(cluster, 1, highest=3)
    with pytest.raises(Refused, match="ask for a downgrade"):
        update(cluster, 2)
    assert update(cluster, 2, way) == 2
    with pytest.raises(Refused, match="no downgrade"):
        update(cluster, 3, way)


@pytest.mark.parametrize("way", [SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_levels_cannot_be_lowered_to_releases_that_do_not_know_them(cluster, way):
    register(cluster, 1, highest=3)
    with pytest.raises(Refused, match="cannot read the records of levels"):
        update(cluster, 1, way)


@pytest.mark.parametrize(("feature", "level", "way", "reason"), [
    ("nonsense", 1, UPGRADE, "not known"), ("group.version", 1, UPGRADE, "level 0 only"),
    (ZURAU_VERSION, 0, SAFE_DOWNGRADE, "levels 1 to 3"), (ZURAU_VERSION, 4, UPGRADE, "levels 1 to 3"),
    (ZURAU_VERSION, 3, 0, "no way"), (ZURAU_VERSION, 3, 4, "no way"),
])  # fmt: skip
def test_what_cannot_be_is_refused_with_the_reason(cluster, feature, level, way, reason):
    register(cluster, 1, highest=2)
    register(cluster, 1, highest=3)
    with pytest.raises(Refused, match=reason):
        update(cluster, level, way, feature)


def test_one_update_that_is_refused_refuses_the_others(cluster):
    register(cluster, 1, highest=2)
    register(cluster, 1, highest=3)
    with pytest.raises(Refused, match="'nonsense'"):
        cluster.ask(UpdateFeatures([FeatureUpdate(ZURAU_VERSION, 3), FeatureUpdate("nonsense", 1)]))
    assert level_of(cluster.image, ZURAU_VERSION) == 2


def test_a_snapshot_holds_levels_and_what_brokers_support(cluster):
    register(cluster, 1, highest=3)
    register(cluster, 2, highest=3)
    restored = ClusterImage()
    for record in freeze(cluster.image)():
        apply_record(restored, decode_record(encode_record(record)), 99)
    restored.epoch = cluster.image.epoch
    assert restored == cluster.image


@pytest.mark.parametrize(("feature", "level"), [(ZURAU_VERSION, 4), (ZURAU_VERSION, 0), ("of a later release", 1)])
def test_a_level_that_a_release_does_not_know_stops_the_replay(feature, level):
    with pytest.raises(ReleaseTooOld, match="start a release that supports it"):
        apply_record(ClusterImage(), FeatureLevelChanged(feature=feature, level=level), 0)


def test_a_release_says_what_it_supports():
    assert FeatureRange(ZURAU_VERSION, 1, 3) in supported_ranges()
