"""DescribeUserScramCredentials: no user has a password, because none can be set (alter_user_scram_credentials.py)."""

from __future__ import annotations

from collections import Counter

from zurau.api.kafka.call import Call
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


async def handle(
    request: DescribeUserScramCredentialsRequest,
    call: Call,  # noqa: ARG001 - nothing is looked up
) -> DescribeUserScramCredentialsResponse:
    asked = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(results=[_answer(user, count) for user, count in asked.items()])


def _answer(user: str, count: int) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            user=user, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=f"user {user!r} is asked for twice"
        )
    return DescribeUserScramCredentialsResult(
        user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=f"user {user!r} has no password here"
    )
