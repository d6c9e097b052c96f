"""LeaveGroup (key 13), versions 0 to 5: these members are leaving.

Up to version 2 a member leaves for itself; from version 3 on, several may be removed at once.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, since, string, until


class MemberIdentity(Struct):
    member_id: string
    group_instance_id: string | None = None
    reason: Annotated[string | None, since(5)] = None


class LeaveGroupRequest(Request["LeaveGroupResponse"]):
    api_key: ClassVar = 13
    flexible_since: ClassVar = 4

    group_id: string
    member_id: Annotated[string, until(2)] = ""
    members: Annotated[list[MemberIdentity], since(3)] = []


class MemberResponse(Struct):
    member_id: string
    group_instance_id: string | None = None
    error_code: i16 = 0


class LeaveGroupResponse(Message):
    api_key: ClassVar = 13
    flexible_since: ClassVar = 4

    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
    members: Annotated[list[MemberResponse], since(3)] = []
