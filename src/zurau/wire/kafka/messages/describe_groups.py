"""DescribeGroups (key 15), versions 0 to 6: state and members of consumer groups."""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import NOT_ASKED_FOR, Message, Request, Struct, blob, boolean, i16, i32, since, string


class DescribeGroupsRequest(Request["DescribeGroupsResponse"]):
    api_key: ClassVar = 15
    flexible_since: ClassVar = 5

    groups: list[string]
    include_authorized_operations: Annotated[boolean, since(3)] = False


class DescribedGroupMember(Struct, kw_only=True):
    member_id: string
    group_instance_id: Annotated[string | None, since(4)] = None
    client_id: string
    client_host: string
    member_metadata: blob
    member_assignment: blob


class DescribedGroup(Struct, kw_only=True):
    error_code: i16 = 0
    error_message: Annotated[string | None, since(6)] = None
    group_id: string
    group_state: string = ""
    protocol_type: string = ""
    #: The assignor in use.
    protocol_data: string = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[i32, since(3)] = NOT_ASKED_FOR


class DescribeGroupsResponse(Message):
    api_key: ClassVar = 15
    flexible_since: ClassVar = 5

    throttle_time_ms: Annotated[i32, since(1)] = 0
    groups: list[DescribedGroup] = []
