"""JoinGroup (key 11), versions 0 to 9: let me into this consumer group.

From version 4 on, a member without an id is first given one and told to come again (KIP-394). What members say and
are told is opaque here; `consumer_protocol.py` knows what consumers put in it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, blob, boolean, i16, i32, nullable_since, since, string


class JoinGroupRequestProtocol(Struct):
    name: string
    metadata: blob


class JoinGroupRequest(Request["JoinGroupResponse"], kw_only=True):
    api_key: ClassVar = 11
    flexible_since: ClassVar = 6

    group_id: string
    session_timeout_ms: i32
    #: -1: version 0 had only the session timeout.
    rebalance_timeout_ms: Annotated[i32, since(1)] = -1
    #: Empty the first time.
    member_id: string = ""
    #: Set for a static member (KIP-345).
    group_instance_id: Annotated[string | None, since(5)] = None
    protocol_type: string
    #: In order of preference.
    protocols: list[JoinGroupRequestProtocol]
    reason: Annotated[string | None, since(8)] = None


class JoinGroupResponseMember(Struct, kw_only=True):
    member_id: string
    group_instance_id: Annotated[string | None, since(5)] = None
    metadata: blob


class JoinGroupResponse(Message):
    api_key: ClassVar = 11
    flexible_since: ClassVar = 6

    throttle_time_ms: Annotated[i32, since(2)] = 0
    error_code: i16 = 0
    generation_id: i32 = -1
    protocol_type: Annotated[string | None, since(7)] = None
    protocol_name: Annotated[string | None, nullable_since(7)] = ""
    leader: string = ""
    #: The leader need not assign anew (KIP-814).
    skip_assignment: Annotated[boolean, since(9)] = False
    member_id: string = ""
    #: For the leader only.
    members: list[JoinGroupResponseMember] = []
