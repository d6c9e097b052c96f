"""DescribeAcls (key 29), versions 1 to 3: who may do what?"""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i8, i16, i32, string


class DescribeAclsRequest(Request["DescribeAclsResponse"], kw_only=True):
    api_key: ClassVar = 29
    flexible_since: ClassVar = 2

    #: 1: any, 2: topic, 3: group, 4: cluster, 5: transactional id, 6: delegation token, 7: user.
    resource_type_filter: i8
    resource_name_filter: string | None = None
    #: 1: any, 2: what matches, 3: this very name, 4: names that begin so.
    pattern_type_filter: i8 = 3
    principal_filter: string | None = None
    host_filter: string | None = None
    operation: i8
    permission_type: i8


class AclDescription(Struct):
    principal: string
    host: string
    operation: i8
    permission_type: i8


class DescribeAclsResource(Struct):
    resource_type: i8
    resource_name: string
    #: 3: this very name, 4: names that begin so.
    pattern_type: i8 = 3
    acls: list[AclDescription] = []


class DescribeAclsResponse(Message):
    api_key: ClassVar = 29
    flexible_since: ClassVar = 2

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    resources: list[DescribeAclsResource] = []
