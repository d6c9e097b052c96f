"""DescribeClientQuotas: nobody has a quota, because none can be set (alter_client_quotas.py).

A filter that Kafka would not understand is refused all the same, so that its author hears of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from zurau.api.kafka.call import Call
from zurau.errors import Refused
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

ENTITY_TYPES = {"user", "client-id", "ip"}
THIS_NAME = 0
MATCH_TYPES = (THIS_NAME, 1, 2)


async def handle(request: DescribeClientQuotasRequest, call: Call) -> DescribeClientQuotasResponse:  # noqa: ARG001
    try:
        _check(request.components)
    except Refused as refused:
        return DescribeClientQuotasResponse(error_code=refused.code, error_message=refused.message, entries=None)
    return DescribeClientQuotasResponse(entries=[])


def _check(filters: Sequence[ComponentData]) -> None:
    """Raises `Refused` for the first that is wrong, so that there are never many to look at."""
    seen: set[str] = set()
    for one in filters:
        if not one.entity_type or one.entity_type in seen:
            raise Refused(ErrorCode.INVALID_REQUEST, "an entity type is empty or named twice")
        if one.entity_type not in ENTITY_TYPES:
            raise Refused(ErrorCode.UNSUPPORTED_VERSION, "there is no such entity type")
        if one.match_type not in MATCH_TYPES or (one.match is None) == (one.match_type == THIS_NAME):
            raise Refused(ErrorCode.INVALID_REQUEST, f"what to match of {one.entity_type!r} is not clear")
        seen.add(one.entity_type)
    if "ip" in seen and len(seen) > 1:
        raise Refused(ErrorCode.INVALID_REQUEST, "an ip is asked for alone")
