"""IncrementalAlterConfigs: single settings are set, deleted, or added to; the others stay."""

from __future__ import annotations

from collections.abc import Collection

from zurau.api.kafka.call import Call
from zurau.api.kafka.repeated import named_twice, repeated
from zurau.errors import Refused
from zurau.machines.controller.commands import AlterConfigs, ConfigEdit
from zurau.pending import all_of, start
from zurau.wire.kafka.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(request: IncrementalAlterConfigsRequest, call: Call) -> IncrementalAlterConfigsResponse:
    twice = await repeated([(resource.resource_type, resource.resource_name) for resource in request.resources], call)
    answers = [
        start(_alter(resource, twice, request.validate_only, call))
        async for resource in call.in_turns(request.resources)
    ]
    await all_of(answers)
    return IncrementalAlterConfigsResponse(responses=[answer.result() for answer in answers])


async def _alter(
    resource: AlterConfigsResource, twice: Collection[tuple[int, str]], validate_only: bool, call: Call
) -> AlterConfigsResourceResponse:
    edits = [ConfigEdit(config.name, config.config_operation, config.value) for config in resource.configs]
    command = AlterConfigs(resource.resource_type, resource.resource_name, edits, validate_only)
    error_code, error_message = 0, None
    try:
        if (resource.resource_type, resource.resource_name) in twice:
            raise named_twice()
        await call.broker.controller.ask(command)
    except Refused as refused:
        error_code, error_message = int(refused.code), refused.message
    return AlterConfigsResourceResponse(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
