"""UpdateFeatures: no feature has a level to choose here, so only what holds already can be asked for."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.features import FEATURES
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

#: From here on all updates succeed or none, with one error for all of them.
ALL_OR_NONE_SINCE = 2


async def handle(request: UpdateFeaturesRequest, call: Call) -> UpdateFeaturesResponse:
    results = [_update(wanted) for wanted in request.feature_updates]
    if call.version < ALL_OR_NONE_SINCE:
        return UpdateFeaturesResponse(results=results)
    for result in results:
        if result.error_code:
            return UpdateFeaturesResponse(error_code=result.error_code, error_message=result.error_message)
    return UpdateFeaturesResponse()


def _update(wanted: FeatureUpdateKey) -> UpdatableFeatureResult:
    level = FEATURES.get(wanted.feature)
    if level is not None and level.now == wanted.max_version_level:
        return UpdatableFeatureResult(feature=wanted.feature)
    known = "is not known here" if level is None else f"is at level {level.now}, which is all this broker can do"
    return UpdatableFeatureResult(
        feature=wanted.feature,
        error_code=ErrorCode.INVALID_UPDATE_VERSION,
        error_message=f"{wanted.feature!r} cannot be set to {wanted.max_version_level}: it {known}",
    )
