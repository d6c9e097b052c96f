"""UpdateFeatures (key 57), versions 0 to 2: raise or lower the levels of features."""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, boolean, i8, i16, i32, since, string, until


class FeatureUpdateKey(Struct):
    feature: string
    max_version_level: i16
    allow_downgrade: Annotated[boolean, until(0)] = False
    #: 1: up, 2: down if nothing is lost, 3: down in any case.
    upgrade_type: Annotated[i8, since(1)] = 1


class UpdateFeaturesRequest(Request["UpdateFeaturesResponse"], kw_only=True):
    api_key: ClassVar = 57
    flexible_since: ClassVar = 0

    timeout_ms: i32 = 60000
    feature_updates: list[FeatureUpdateKey]
    validate_only: Annotated[boolean, since(1)] = False


class UpdatableFeatureResult(Struct):
    feature: string
    error_code: i16 = 0
    error_message: string | None = None


class UpdateFeaturesResponse(Message):
    api_key: ClassVar = 57
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    results: Annotated[list[UpdatableFeatureResult], until(1)] = []
