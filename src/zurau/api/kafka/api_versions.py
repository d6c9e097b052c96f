"""ApiVersions: which questions this broker understands, in which versions."""

from __future__ import annotations

from functools import cache

from zurau.api.kafka.call import Call
from zurau.machines.controller.features import SUPPORTED, level_of
from zurau.machines.controller.image import ClusterImage
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

#: Java clients up to 3.8 break off when a feature may be at level 0, and ask in version 3 (KAFKA-17011).
LEVEL_ZERO_SINCE = 4


async def handle(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    if call.version >= 3 and not (request.client_software_name and request.client_software_version):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=_offered(),
        supported_features=_supported_features(may_be_zero=call.version >= LEVEL_ZERO_SINCE),
        finalized_features_epoch=call.broker.image.epoch,
        finalized_features=_finalized_features(call.broker.image),
    )


def unsupported() -> ApiVersionsResponse:
    """The answer to a version of ApiVersions that we don't know: the client reads the range and asks again."""
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_offered())


@cache
def _offered() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=api.key, min_version=api.advertised_first, max_version=api.last)
        for api in sorted(APIS.values(), key=lambda api: api.key)
    ]


def _supported_features(*, may_be_zero: bool) -> list[SupportedFeatureKey]:
    return [
        SupportedFeatureKey(name=name, min_version=level.lowest, max_version=level.highest)
        for name, level in SUPPORTED.items()
        if level.lowest > 0 or may_be_zero
    ]


def _finalized_features(image: ClusterImage) -> list[FinalizedFeatureKey]:
    """A feature at level 0 is one that is not there."""
    return [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name in SUPPORTED
        if (level := level_of(image, name)) > 0
    ]
