"""UnregisterBroker: forget a broker that is gone for good, and holds nothing."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.errors import Refused
from zurau.ids import BrokerId
from zurau.machines.controller.commands import UnregisterBroker
from zurau.wire.kafka.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(request: UnregisterBrokerRequest, call: Call) -> UnregisterBrokerResponse:
    try:
        await call.broker.controller.ask(UnregisterBroker(BrokerId(request.broker_id)))
    except Refused as refused:
        return UnregisterBrokerResponse(error_code=refused.code, error_message=refused.message)
    return UnregisterBrokerResponse()
