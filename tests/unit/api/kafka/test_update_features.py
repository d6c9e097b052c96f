from __future__ import annotations

import pytest

from zurau.api.kafka import update_features
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


def update(ask, broker, version, *wanted):
    updates = [FeatureUpdateKey(feature=name, max_version_level=level) for name, level in wanted]
    return ask(update_features, UpdateFeaturesRequest(feature_updates=updates), version, broker)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_level_that_holds_can_be_asked_for(ask, broker, version):
    answer = update(ask, broker, version, ("metadata.version", 7), ("transaction.version", 0))
    assert [answer.error_code, *(result.error_code for result in answer.results)] == [0] * (1 if version == 2 else 3)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("wanted", [("group.version", 1), ("nonsense", 1), ("metadata.version", 30)])
def test_one_level_that_cannot_be_had_refuses_them_all(ask, broker, version, wanted):
    answer = update(ask, broker, version, ("metadata.version", 7), wanted)
    assert (answer.error_code, answer.results) == (ErrorCode.INVALID_UPDATE_VERSION, [])
    assert f"{wanted[0]!r} cannot be set to level {wanted[1]}" in answer.error_message


def test_in_version_0_a_flag_asks_for_a_downgrade(ask, broker):
    down = FeatureUpdateKey(feature="zurau.version", max_version_level=1, allow_downgrade=True)
    answer = ask(update_features, UpdateFeaturesRequest(feature_updates=[down]), 0, broker)
    assert "releases of level 1 cannot read the records of levels" in answer.error_message


def test_of_a_feature_that_is_named_twice_the_last_counts(ask, broker):
    answer = update(ask, broker, 1, ("zurau.version", 9), ("zurau.version", 2))
    assert (answer.error_code, [each.feature for each in answer.results]) == (0, ["zurau.version"])


def test_without_time_nothing_is_begun(ask, broker):
    request = UpdateFeaturesRequest(feature_updates=[], timeout_ms=0)
    assert ask(update_features, request, 1, broker).error_code == ErrorCode.REQUEST_TIMED_OUT
