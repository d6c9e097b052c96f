"""CreateAcls: refused, so that nobody believes to be protected; see no_authorizer.py."""

from __future__ import annotations

from zurau.api.kafka import no_authorizer
from zurau.api.kafka.call import Call
from zurau.wire.kafka.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


async def handle(request: CreateAclsRequest, call: Call) -> CreateAclsResponse:
    refused = AclCreationResult(error_code=no_authorizer.CODE, error_message=no_authorizer.MESSAGE)
    return CreateAclsResponse(results=[refused async for _ in call.in_turns(request.creations)])
