"""AlterConfigs: the named settings are set, and every other one goes back to its default."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.errors import Refused
from zurau.machines.controller.commands import ReplaceConfigs
from zurau.pending import all_of, start
from zurau.wire.kafka.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, call: Call) -> AlterConfigsResponse:
    answers = [start(_replace(resource, request.validate_only, call)) for resource in request.resources]
    await all_of(answers)
    return AlterConfigsResponse(responses=[answer.result() for answer in answers])


async def _replace(resource: AlterConfigsResource, validate_only: bool, call: Call) -> AlterConfigsResourceResponse:
    configs = {config.name: config.value for config in resource.configs}
    command = ReplaceConfigs(resource.resource_type, resource.resource_name, configs, validate_only)
    error_code, error_message = 0, None
    try:
        await call.broker.controller.ask(command)
    except Refused as refused:
        error_code, error_message = int(refused.code), refused.message
    return AlterConfigsResourceResponse(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
