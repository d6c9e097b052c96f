"""SaslAuthenticate (key 36), versions 0 to 2: one step of the conversation that the mechanism prescribes."""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, blob, i16, i64, since, string


class SaslAuthenticateRequest(Request["SaslAuthenticateResponse"]):
    api_key: ClassVar = 36
    flexible_since: ClassVar = 2

    auth_bytes: blob


class SaslAuthenticateResponse(Message):
    api_key: ClassVar = 36
    flexible_since: ClassVar = 2

    error_code: i16 = 0
    error_message: string | None = None
    auth_bytes: blob = b""
    session_lifetime_ms: Annotated[i64, since(1)] = 0
