"""ListConfigResources: what has settings. Groups and subscriptions to metrics have none here, so none is listed."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.machines.controller.commands import ResourceType
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

#: Before, only subscriptions to metrics were asked for.
TYPES_SINCE = 1


async def handle(request: ListConfigResourcesRequest, call: Call) -> ListConfigResourcesResponse:
    types = {resource_type: None async for resource_type in call.in_turns(request.resource_types)}
    wanted = list(types or dict.fromkeys(ResourceType))
    if call.version < TYPES_SINCE:
        wanted = [ResourceType.CLIENT_METRICS]
    if not set(wanted) <= set(ResourceType):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in wanted
            async for name in call.in_turns(_names(resource_type, call))
        ]
    )


def _names(resource_type: int, call: Call) -> list[str]:
    if resource_type == ResourceType.TOPIC:
        return list(call.broker.image.topics)
    if resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker_id) for broker_id in call.broker.image.brokers]
    return []
