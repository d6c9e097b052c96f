"""CreateAcls (key 30), versions 1 to 3: let somebody do something, or forbid it."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i8, i16, i32, string


class AclCreation(Struct, kw_only=True):
    resource_type: i8
    resource_name: string
    #: 3: this very name, 4: names that begin so.
    resource_pattern_type: i8 = 3
    principal: string
    host: string
    operation: i8
    permission_type: i8


class CreateAclsRequest(Request["CreateAclsResponse"]):
    api_key: ClassVar = 30
    flexible_since: ClassVar = 2

    creations: list[AclCreation]


class AclCreationResult(Struct):
    error_code: i16 = 0
    error_message: string | None = None


class CreateAclsResponse(Message):
    api_key: ClassVar = 30
    flexible_since: ClassVar = 2

    throttle_time_ms: i32 = 0
    results: list[AclCreationResult] = []
