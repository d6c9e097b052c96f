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


@pytest.mark.parametrize("version", [0, 1])
def test_each_level_that_cannot_be_had_is_refused_for_itself(ask, broker, version):
    answer = update(ask, broker, version, ("metadata.version", 7), ("group.version", 1), ("nonsense", 1))
    codes = [result.error_code for result in answer.results]
    assert (answer.error_code, codes) == (0, [0, *[ErrorCode.INVALID_UPDATE_VERSION] * 2])


def test_newer_clients_hear_one_error_for_all(ask, broker):
    answer = update(ask, broker, 2, ("metadata.version", 7), ("group.version", 1))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "'group.version' cannot be set to 1" in answer.error_message
