"""UnregisterBroker (key 64), version 0: a broker is gone for good."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, i16, i32, string


class UnregisterBrokerRequest(Request["UnregisterBrokerResponse"]):
    api_key: ClassVar = 64
    flexible_since: ClassVar = 0

    broker_id: i32


class UnregisterBrokerResponse(Message):
    api_key: ClassVar = 64
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
