"""UpdateFeatures: no feature has a level to choose here, so only what holds already can be asked for.

All updates of a request succeed or none, with one error for all of them.
"""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.features import FEATURES
from zurau.errors import Refused
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE_TYPES = (1, 2, 3)


async def handle(request: UpdateFeaturesRequest, call: Call) -> UpdateFeaturesResponse:
    try:
        async for wanted in call.in_turns(request.feature_updates):
            _check(wanted)
    except Refused as refused:
        return UpdateFeaturesResponse(error_code=refused.code, error_message=refused.message)
    return UpdateFeaturesResponse(
        results=[
            UpdatableFeatureResult(feature=wanted.feature) async for wanted in call.in_turns(request.feature_updates)
        ]
    )


def _check(wanted: FeatureUpdateKey) -> None:
    """Raises `Refused` unless the feature is at the wanted level already."""
    level = FEATURES.get(wanted.feature)
    if wanted.upgrade_type not in UPGRADE_TYPES:
        reason = f"{wanted.upgrade_type} is no way to change it"
    elif level is None:
        reason = "it is not known here"
    elif level.now != wanted.max_version_level:
        reason = f"it is at level {level.now}, which is all this broker can do"
    else:
        return
    raise Refused(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"{wanted.feature!r} cannot be set to level {wanted.max_version_level}: {reason}",
    )
