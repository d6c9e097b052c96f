"""AlterUserScramCredentials (key 51), version 0: set and remove passwords."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, blob, i8, i16, i32, string


class ScramCredentialDeletion(Struct):
    name: string
    #: 1: SCRAM-SHA-256, 2: SCRAM-SHA-512.
    mechanism: i8


class ScramCredentialUpsertion(Struct):
    name: string
    #: 1: SCRAM-SHA-256, 2: SCRAM-SHA-512.
    mechanism: i8
    iterations: i32
    salt: blob
    salted_password: blob


class AlterUserScramCredentialsRequest(Request["AlterUserScramCredentialsResponse"]):
    api_key: ClassVar = 51
    flexible_since: ClassVar = 0

    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]


class AlterUserScramCredentialsResult(Struct):
    user: string
    error_code: i16 = 0
    error_message: string | None = None


class AlterUserScramCredentialsResponse(Message):
    api_key: ClassVar = 51
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    results: list[AlterUserScramCredentialsResult] = []
