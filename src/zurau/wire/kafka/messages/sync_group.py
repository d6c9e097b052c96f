"""SyncGroup (key 14), versions 0 to 5: the leader hands in the assignments, everyone gets their own."""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, blob, i16, i32, since, string


class SyncGroupRequestAssignment(Struct):
    member_id: string
    assignment: blob


class SyncGroupRequest(Request["SyncGroupResponse"]):
    api_key: ClassVar = 14
    flexible_since: ClassVar = 4

    group_id: string
    generation_id: i32
    member_id: string
    group_instance_id: Annotated[string | None, since(3)] = None
    protocol_type: Annotated[string | None, since(5)] = None
    protocol_name: Annotated[string | None, since(5)] = None
    #: From the leader only.
    assignments: list[SyncGroupRequestAssignment] = []


class SyncGroupResponse(Message):
    api_key: ClassVar = 14
    flexible_since: ClassVar = 4

    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
    protocol_type: Annotated[string | None, since(5)] = None
    protocol_name: Annotated[string | None, since(5)] = None
    assignment: blob = b""
