"""LeaveGroup: a member leaves; from version 3 on, several are removed at once."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group, pieces
from zurau.errors import Refused
from zurau.machines.groups.commands import LeaveGroup, Leaver
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

MANY_MEMBERS_SINCE = 3


async def handle(request: LeaveGroupRequest, call: Call) -> LeaveGroupResponse:
    leavers: tuple[Leaver, ...] = (Leaver(request.member_id),)
    if call.version >= MANY_MEMBERS_SINCE:
        leavers = tuple(
            [Leaver(member.member_id, member.group_instance_id) async for member in call.in_turns(request.members)]
        )
    codes: list[ErrorCode] = []
    try:
        async for piece in call.in_turns(pieces(leavers)):
            left = await ask_group(request.group_id, LeaveGroup(request.group_id, piece), call)
            codes += left.codes
    except Refused as refused:
        return LeaveGroupResponse(error_code=refused.code)
    if call.version < MANY_MEMBERS_SINCE:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=leaver.member_id, group_instance_id=leaver.instance_id, error_code=code)
            async for leaver, code in call.in_turns(list(zip(leavers, codes, strict=True)))
        ]
    )
