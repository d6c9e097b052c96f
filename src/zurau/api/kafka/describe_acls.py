"""DescribeAcls: there are none; see no_authorizer.py."""

from __future__ import annotations

from zurau.api.kafka import no_authorizer
from zurau.api.kafka.call import Call
from zurau.wire.kafka.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


async def handle(request: DescribeAclsRequest, call: Call) -> DescribeAclsResponse:  # noqa: ARG001 - all get the same
    return DescribeAclsResponse(error_code=no_authorizer.CODE, error_message=no_authorizer.MESSAGE)
