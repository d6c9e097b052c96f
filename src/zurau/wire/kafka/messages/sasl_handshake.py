"""SaslHandshake (key 17), versions 0 and 1: which way of proving who one is shall be used?"""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, i16, string


class SaslHandshakeRequest(Request["SaslHandshakeResponse"]):
    api_key: ClassVar = 17

    mechanism: string


class SaslHandshakeResponse(Message):
    api_key: ClassVar = 17

    error_code: i16 = 0
    #: What the broker offers.
    mechanisms: list[string] = []
