"""ListGroups: the groups that this broker looks after."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.errors import Refused
from zurau.machines.groups import commands
from zurau.wire.kafka.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

#: The only kind of group that there is here; filters may name it in any case.
CLASSIC = "classic"


async def handle(request: ListGroupsRequest, call: Call) -> ListGroupsResponse:
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    if types and CLASSIC not in types:
        return ListGroupsResponse()
    found: list[commands.ListedGroup] = []
    try:
        async for runtime in call.in_turns(call.broker.group_runtimes()):
            found += sorted((await runtime.submit(commands.ListGroups())).groups)
    except Refused as refused:
        return ListGroupsResponse(error_code=refused.code)
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=CLASSIC,
            )
            async for group in call.in_turns(found)
            if not states or group.state.lower() in states
        ]
    )
