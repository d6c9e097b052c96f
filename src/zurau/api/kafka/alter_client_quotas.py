"""AlterClientQuotas: refused. A quota that is kept and not enforced would be worse than none."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    QuotaAlterationResult,
)

MESSAGE = "quotas are not served yet: nothing was set, and no client is held back"


async def handle(request: AlterClientQuotasRequest, call: Call) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            QuotaAlterationResult(error_code=ErrorCode.INVALID_REQUEST, error_message=MESSAGE, entity=entry.entity)
            async for entry in call.in_turns(request.entries)
        ]
    )
