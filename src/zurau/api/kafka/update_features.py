"""UpdateFeatures: raise or lower the levels of features.

All updates of a request succeed or none, with one error for all of them.
"""

from __future__ import annotations

from zurau.api.kafka.administration import change_each
from zurau.api.kafka.call import Call
from zurau.errors import Refused
from zurau.machines.controller.commands import FeatureUpdate, UpdateFeatures, UpgradeType
from zurau.wire.kafka.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


async def handle(request: UpdateFeaturesRequest, call: Call) -> UpdateFeaturesResponse:
    # Of a feature that is named twice, the last counts, as with Kafka.
    updates = {each.feature: _update(each, call.version) async for each in call.in_turns(request.feature_updates)}
    command = UpdateFeatures(list(updates.values()), request.validate_only)

    async def change(wanted: UpdateFeatures) -> Refused | None:
        try:
            return await call.broker.controller.submit(wanted)
        except Refused as refused:
            return refused

    (outcome,) = await change_each([command], change, request.timeout_ms, call)
    if isinstance(outcome, Refused):
        return UpdateFeaturesResponse(error_code=outcome.code, error_message=outcome.message)
    return UpdateFeaturesResponse(results=[UpdatableFeatureResult(feature=feature) for feature in updates])


def _update(wanted: FeatureUpdateKey, version: int) -> FeatureUpdate:
    """Version 0 has a flag in the place of the three ways."""
    down_or_up = UpgradeType.SAFE_DOWNGRADE if wanted.allow_downgrade else UpgradeType.UPGRADE
    way = down_or_up if version == 0 else wanted.upgrade_type
    return FeatureUpdate(wanted.feature, wanted.max_version_level, way)
