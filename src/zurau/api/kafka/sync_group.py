"""SyncGroup: the leader hands in what it has shared out, and every member is told its share."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group
from zurau.errors import Refused
from zurau.machines.groups.commands import SyncGroup
from zurau.wire.kafka.messages.sync_group import SyncGroupRequest, SyncGroupResponse


async def handle(request: SyncGroupRequest, call: Call) -> SyncGroupResponse:
    command = SyncGroup(
        group_id=request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments={share.member_id: share.assignment for share in request.assignments},
    )
    try:
        synced = await ask_group(request.group_id, command, call)
    except Refused as refused:
        return SyncGroupResponse(error_code=refused.code)
    return SyncGroupResponse(
        protocol_type=synced.protocol_type, protocol_name=synced.protocol, assignment=synced.assignment
    )
