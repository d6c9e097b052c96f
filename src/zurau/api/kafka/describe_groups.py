"""DescribeGroups: the state of groups and their members.

Until version 5 a group that does not exist is described as dead, without an error; since then it is an error.
"""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.api.kafka.coordinators import ask_group
from zurau.broker.authorization import Operation
from zurau.errors import ProtocolViolation, Refused
from zurau.machines.groups.commands import DescribeGroup
from zurau.machines.groups.group import GroupState
from zurau.settings import KIB
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.frames import RESPONSE_BYTES_MAX
from zurau.wire.kafka.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from zurau.wire.kafka.schema import NOT_ASKED_FOR

NOT_FOUND_SINCE = 6
#: From this size on an answer is large: what members have said, once for each time that their group is named.
LARGE_BYTES = 512 * KIB
ON_GROUP = sum(1 << bit for bit in (Operation.READ, Operation.DELETE, Operation.DESCRIBE))


async def handle(request: DescribeGroupsRequest, call: Call) -> DescribeGroupsResponse:
    operations = ON_GROUP if request.include_authorized_operations else NOT_ASKED_FOR
    described = {
        group_id: await _describe(group_id, operations, call)
        async for group_id in call.in_turns(dict.fromkeys(request.groups))
    }
    sizes = {group_id: _opaque_bytes(group) async for group_id, group in call.in_turns(described.items())}
    size = sum([sizes[group_id] async for group_id in call.in_turns(request.groups)])
    if size > RESPONSE_BYTES_MAX:
        raise ProtocolViolation(f"members of these groups have said {size} bytes; describe fewer groups at a time")
    if size > LARGE_BYTES:
        call.takes_long = call.is_large = True
    return DescribeGroupsResponse(groups=[described[group_id] async for group_id in call.in_turns(request.groups)])


def _opaque_bytes(group: DescribedGroup) -> int:
    return sum(len(member.member_metadata) + len(member.member_assignment) for member in group.members)


async def _describe(group_id: str, operations: int, call: Call) -> DescribedGroup:
    try:
        description = await ask_group(group_id, DescribeGroup(group_id), call)
    except Refused as refused:
        is_unknown = refused.code is ErrorCode.GROUP_ID_NOT_FOUND
        return DescribedGroup(
            error_code=ErrorCode.NONE if is_unknown and call.version < NOT_FOUND_SINCE else refused.code,
            error_message=refused.message,
            group_id=group_id,
            group_state=GroupState.DEAD.value if is_unknown else "",
            authorized_operations=operations,
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=description.state,
        protocol_type=description.protocol_type,
        protocol_data=description.protocol,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            async for member in call.in_turns(description.members)
        ],
        authorized_operations=operations,
    )
