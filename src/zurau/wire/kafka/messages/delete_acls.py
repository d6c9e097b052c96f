"""DeleteAcls (key 31), versions 1 to 3: take back what such ACLs allow or forbid."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i8, i16, i32, string


class DeleteAclsFilter(Struct, kw_only=True):
    #: 1: any, 2: topic, 3: group, 4: cluster, 5: transactional id, 6: delegation token, 7: user.
    resource_type_filter: i8
    resource_name_filter: string | None = None
    #: 1: any, 2: what matches, 3: this very name, 4: names that begin so.
    pattern_type_filter: i8 = 3
    principal_filter: string | None = None
    host_filter: string | None = None
    operation: i8
    permission_type: i8


class DeleteAclsRequest(Request["DeleteAclsResponse"]):
    api_key: ClassVar = 31
    flexible_since: ClassVar = 2

    filters: list[DeleteAclsFilter]


class DeleteAclsMatchingAcl(Struct, kw_only=True):
    error_code: i16 = 0
    error_message: string | None = None
    resource_type: i8
    resource_name: string
    #: 3: this very name, 4: names that begin so.
    pattern_type: i8 = 3
    principal: string
    host: string
    operation: i8
    permission_type: i8


class DeleteAclsFilterResult(Struct):
    error_code: i16 = 0
    error_message: string | None = None
    matching_acls: list[DeleteAclsMatchingAcl] = []


class DeleteAclsResponse(Message):
    api_key: ClassVar = 31
    flexible_since: ClassVar = 2

    throttle_time_ms: i32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
