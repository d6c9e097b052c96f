"""JoinGroup: become a member of a consumer group, or stay one in its next generation."""

from __future__ import annotations

import uuid

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group
from zurau.errors import Refused
from zurau.machines.groups.commands import Joined, JoinGroup, MemberIdRequired
from zurau.machines.groups.members import Protocol
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

KNOWN_ID_SINCE = 4
NULL_PROTOCOL_SINCE = 7
SKIP_ASSIGNMENT_SINCE = 9
#: Of a client's name, in front of the id that it is given: the whole must fit into a string of the protocol.
NAME_CHARACTERS_MAX = 200


async def handle(request: JoinGroupRequest, call: Call) -> JoinGroupResponse:
    try:
        reply = await ask_group(request.group_id, _command(request, call), call)
    except Refused as refused:
        return _without_generation(refused.code, request.member_id, call.version)
    if isinstance(reply, MemberIdRequired):
        return _without_generation(ErrorCode.MEMBER_ID_REQUIRED, reply.member_id, call.version)
    return await _joined(reply, call)


def _command(request: JoinGroupRequest, call: Call) -> JoinGroup:
    has_rebalance_timeout = request.rebalance_timeout_ms >= 0
    return JoinGroup(
        group_id=request.group_id,
        member_id=request.member_id,
        candidate_id=f"{(request.group_instance_id or call.client_id or '')[:NAME_CHARACTERS_MAX]}-{_unique(call)}",
        instance_id=request.group_instance_id,
        client_id=call.client_id or "",
        # With the slash that Java prints before an address: tools are used to it.
        client_host=f"/{call.caller.host}",
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if has_rebalance_timeout else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple(Protocol(offered.name, offered.metadata) for offered in request.protocols),
        needs_known_id=call.version >= KNOWN_ID_SINCE,
        can_skip_assignment=call.version >= SKIP_ASSIGNMENT_SINCE,
    )


def _unique(call: Call) -> uuid.UUID:
    return uuid.UUID(bytes=call.broker.randomness.bytes(16), version=4)


async def _joined(joined: Joined, call: Call) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol,
        leader=joined.leader_id,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata
            )
            async for member in call.in_turns(joined.members)
        ],
    )


def _without_generation(code: int, member_id: str, version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code,
        protocol_name=None if version >= NULL_PROTOCOL_SINCE else "",
        member_id=member_id,
    )
