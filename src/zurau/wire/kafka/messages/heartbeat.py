"""Heartbeat (key 12), versions 0 to 4: I am still here; is this still the generation?"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, i16, i32, since, string


class HeartbeatRequest(Request["HeartbeatResponse"]):
    api_key: ClassVar = 12
    flexible_since: ClassVar = 4

    group_id: string
    generation_id: i32
    member_id: string
    group_instance_id: Annotated[string | None, since(3)] = None


class HeartbeatResponse(Message):
    api_key: ClassVar = 12
    flexible_since: ClassVar = 4

    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
