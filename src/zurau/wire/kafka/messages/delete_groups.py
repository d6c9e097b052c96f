"""DeleteGroups (key 42), versions 0 to 2: forget groups that have no members."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, string


class DeleteGroupsRequest(Request["DeleteGroupsResponse"]):
    api_key: ClassVar = 42
    flexible_since: ClassVar = 2

    groups_names: list[string]


class DeletableGroupResult(Struct):
    group_id: string
    error_code: i16 = 0


class DeleteGroupsResponse(Message):
    api_key: ClassVar = 42
    flexible_since: ClassVar = 2

    throttle_time_ms: i32 = 0
    results: list[DeletableGroupResult] = []
