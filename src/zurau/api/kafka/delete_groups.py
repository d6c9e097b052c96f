"""DeleteGroups: forget groups that have no members, with their offsets."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group
from zurau.errors import Refused
from zurau.machines.groups.commands import DeleteGroup, Unfinished
from zurau.wire.kafka.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


async def handle(request: DeleteGroupsRequest, call: Call) -> DeleteGroupsResponse:
    results = [await _delete(group_id, call) async for group_id in call.in_turns(request.groups_names)]
    return DeleteGroupsResponse(results=results)


async def _delete(group_id: str, call: Call) -> DeletableGroupResult:
    try:
        while isinstance(await ask_group(group_id, DeleteGroup(group_id), call), Unfinished):
            pass
    except Refused as refused:
        return DeletableGroupResult(group_id=group_id, error_code=refused.code)
    return DeletableGroupResult(group_id=group_id)
