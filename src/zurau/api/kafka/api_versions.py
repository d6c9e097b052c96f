"""ApiVersions: which questions this broker understands, in which versions."""

from __future__ import annotations

from functools import cache

from zurau.api.kafka.call import Call
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse


async def handle(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    if call.version >= 3 and not (request.client_software_name and request.client_software_version):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=_offered())


def unsupported() -> ApiVersionsResponse:
    """The answer to a version of ApiVersions that we don't know: the client reads the range and asks again."""
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_offered())


@cache
def _offered() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=api.key, min_version=api.advertised_first, max_version=api.last)
        for api in sorted(APIS.values(), key=lambda api: api.key)
    ]
