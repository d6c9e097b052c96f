"""AlterUserScramCredentials: refused, as long as nobody is asked for a password."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

MESSAGE = "SASL is not served yet: nothing was set, and clients are not asked for a password"


async def handle(
    request: AlterUserScramCredentialsRequest,
    call: Call,  # noqa: ARG001 - nothing is looked up
) -> AlterUserScramCredentialsResponse:
    set_for = {upsertion.name for upsertion in request.upsertions}
    removed_from = {deletion.name for deletion in request.deletions} - set_for
    refused = [
        AlterUserScramCredentialsResult(
            user=user, error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, error_message=MESSAGE
        )
        for user in sorted(set_for)
    ]
    unknown = [
        AlterUserScramCredentialsResult(
            user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=f"user {user!r} has no password here"
        )
        for user in sorted(removed_from)
    ]
    return AlterUserScramCredentialsResponse(results=refused + unknown)
