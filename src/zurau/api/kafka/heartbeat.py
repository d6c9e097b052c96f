"""Heartbeat: a member is still there, and asks whether its generation is still the current one."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group
from zurau.errors import Refused
from zurau.machines.groups.commands import Heartbeat
from zurau.wire.kafka.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    command = Heartbeat(request.group_id, request.generation_id, request.member_id, request.group_instance_id)
    try:
        await ask_group(request.group_id, command, call)
    except Refused as refused:
        return HeartbeatResponse(error_code=refused.code)
    return HeartbeatResponse()
