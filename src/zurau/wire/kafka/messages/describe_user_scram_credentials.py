"""DescribeUserScramCredentials (key 50), version 0: who has a password, kept by which mechanism?"""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i8, i16, i32, string


class UserName(Struct):
    name: string


class DescribeUserScramCredentialsRequest(Request["DescribeUserScramCredentialsResponse"]):
    api_key: ClassVar = 50
    flexible_since: ClassVar = 0

    #: Null or empty: all of them.
    users: list[UserName] | None = None


class CredentialInfo(Struct):
    #: 1: SCRAM-SHA-256, 2: SCRAM-SHA-512.
    mechanism: i8
    iterations: i32


class DescribeUserScramCredentialsResult(Struct):
    user: string
    error_code: i16 = 0
    error_message: string | None = None
    credential_infos: list[CredentialInfo] = []


class DescribeUserScramCredentialsResponse(Message):
    api_key: ClassVar = 50
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    results: list[DescribeUserScramCredentialsResult] = []
