"""DeleteAcls: there are none; see no_authorizer.py."""

from __future__ import annotations

from zurau.api.kafka import no_authorizer
from zurau.api.kafka.call import Call
from zurau.wire.kafka.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse


async def handle(request: DeleteAclsRequest, call: Call) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(error_code=no_authorizer.CODE, error_message=no_authorizer.MESSAGE)
    return DeleteAclsResponse(filter_results=[refused async for _ in call.in_turns(request.filters)])
