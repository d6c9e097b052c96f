"""FindCoordinator: which broker looks after a group: the leader of its partition of `__consumer_offsets`."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.broker.leadership import BrokerAddress, addresses, coordinator_of
from zurau.errors import Refused
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP = 0
TRANSACTION = 1
#: From here on a request names several keys.
MANY_KEYS_SINCE = 4


async def handle(request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
    if call.version >= MANY_KEYS_SINCE:
        keys = call.in_turns(request.coordinator_keys)
        found = [_find(key, request.key_type, call) async for key in keys]
        return FindCoordinatorResponse(coordinators=found)
    only = _find(request.key, request.key_type, call)
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _find(key: str, key_type: int, call: Call) -> Coordinator:
    try:
        found = _coordinator(key, key_type, call)
    except Refused as refused:
        return Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=refused.code, error_message=refused.message
        )
    return Coordinator(key=key, node_id=found.broker_id, host=found.host, port=found.port)


def _coordinator(key: str, key_type: int, call: Call) -> BrokerAddress:
    if key_type == TRANSACTION:
        # Any retriable code would have clients ask again until they time out; this one stops them, with the reason.
        raise Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactions are not served yet")
    if key_type != GROUP:
        raise Refused(ErrorCode.INVALID_REQUEST, f"coordinators of type {key_type} are not served")
    broker_id = coordinator_of(key, call.broker)
    for each in addresses(call.broker, call.caller, call.dialled):
        if each.broker_id == broker_id:
            return each
    raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"broker {broker_id}, which looks after it, is not there")
