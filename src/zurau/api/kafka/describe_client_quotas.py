"""DescribeClientQuotas: nobody has a quota, because none can be set (alter_client_quotas.py)."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.wire.kafka.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse


async def handle(
    request: DescribeClientQuotasRequest,  # noqa: ARG001 - whoever is asked for
    call: Call,  # noqa: ARG001
) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(entries=[])
