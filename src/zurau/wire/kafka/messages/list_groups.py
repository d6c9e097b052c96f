"""ListGroups (key 16), versions 0 to 5: the groups that this broker coordinates."""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, since, string


class ListGroupsRequest(Request["ListGroupsResponse"]):
    api_key: ClassVar = 16
    flexible_since: ClassVar = 3

    #: Empty: in any state.
    states_filter: Annotated[list[string], since(4)] = []
    #: Empty: of any type.
    types_filter: Annotated[list[string], since(5)] = []


class ListedGroup(Struct):
    group_id: string
    protocol_type: string
    group_state: Annotated[string, since(4)] = ""
    group_type: Annotated[string, since(5)] = ""


class ListGroupsResponse(Message):
    api_key: ClassVar = 16
    flexible_since: ClassVar = 3

    throttle_time_ms: Annotated[i32, since(1)] = 0
    error_code: i16 = 0
    groups: list[ListedGroup] = []
