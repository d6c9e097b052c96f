"""AlterUserScramCredentials: refused, as long as nobody is asked for a password."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

MECHANISMS = (1, 2)
NOT_SERVED = "SASL is not served yet: nothing was set, and clients are not asked for a password"


async def handle(
    request: AlterUserScramCredentialsRequest,
    call: Call,
) -> AlterUserScramCredentialsResponse:
    refused = {
        deletion.name: _deletion_refused(deletion.name, deletion.mechanism)
        async for deletion in call.in_turns(request.deletions)
    }
    refused |= {
        upsertion.name: _refused(upsertion.name, ErrorCode.UNSUPPORTED_SASL_MECHANISM, NOT_SERVED)
        async for upsertion in call.in_turns(request.upsertions)
    }
    return AlterUserScramCredentialsResponse(results=list(refused.values()))


def _deletion_refused(user: str, mechanism: int) -> AlterUserScramCredentialsResult:
    if mechanism not in MECHANISMS:
        return _refused(user, ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"there is no mechanism {mechanism}")
    return _refused(user, ErrorCode.RESOURCE_NOT_FOUND, "this user has no password here")


def _refused(user: str, code: ErrorCode, message: str) -> AlterUserScramCredentialsResult:
    if not user:
        code, message = ErrorCode.UNACCEPTABLE_CREDENTIAL, "the name of a user is empty"
    return AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
