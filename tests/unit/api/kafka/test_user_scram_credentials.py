from __future__ import annotations

from zurau.api.kafka import alter_user_scram_credentials, describe_user_scram_credentials
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from zurau.wire.kafka.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName

SHA_256 = 1


def describe(ask, broker, names):
    users = None if names is None else [UserName(name=name) for name in names]
    return ask(describe_user_scram_credentials, DescribeUserScramCredentialsRequest(users=users), 0, broker)


def test_no_user_has_a_password(ask, broker):
    assert describe(ask, broker, None).results == []
    assert [result.error_code for result in describe(ask, broker, ["a"]).results] == [ErrorCode.RESOURCE_NOT_FOUND]


def test_a_user_that_is_asked_for_twice_is_answered_once(ask, broker):
    answer = describe(ask, broker, ["a", "b", "a"])
    codes = {result.user: result.error_code for result in answer.results}
    assert codes == {"a": ErrorCode.DUPLICATE_RESOURCE, "b": ErrorCode.RESOURCE_NOT_FOUND}
    assert len(answer.results) == 2


def test_a_password_that_nobody_would_ask_for_is_refused(ask, broker):
    wanted = ScramCredentialUpsertion(
        name="a", mechanism=SHA_256, iterations=4096, salt=b"salt", salted_password=b"password"
    )
    gone = [ScramCredentialDeletion(name="a", mechanism=SHA_256), ScramCredentialDeletion(name="b", mechanism=SHA_256)]
    request = AlterUserScramCredentialsRequest(deletions=gone, upsertions=[wanted])
    answer = ask(alter_user_scram_credentials, request, 0, broker)
    codes = {result.user: result.error_code for result in answer.results}
    assert codes == {"a": ErrorCode.UNSUPPORTED_SASL_MECHANISM, "b": ErrorCode.RESOURCE_NOT_FOUND}
