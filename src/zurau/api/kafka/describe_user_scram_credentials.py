"""DescribeUserScramCredentials: no user has a password, because none can be set (alter_user_scram_credentials.py)."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.repeated import repeated
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


async def handle(
    request: DescribeUserScramCredentialsRequest,
    call: Call,
) -> DescribeUserScramCredentialsResponse:
    names = [user.name async for user in call.in_turns(request.users or ())]
    twice = await repeated(names, call)
    asked = dict.fromkeys(names)
    return DescribeUserScramCredentialsResponse(
        results=[_answer(user, user in twice) async for user in call.in_turns(asked)]
    )


def _answer(user: str, is_asked_twice: bool) -> DescribeUserScramCredentialsResult:
    if is_asked_twice:
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message="this user is asked for twice"
        )
    return DescribeUserScramCredentialsResult(
        user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message="this user has no password here"
    )
