"""DescribeConfigs: every setting of a topic or a broker, with its value and where that comes from."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.broker.config_entries import ConfigEntry, describe_broker, describe_topic
from zurau.errors import Refused
from zurau.machines.controller.commands import ResourceType
from zurau.settings import INT32_MAX, Setting
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


async def handle(request: DescribeConfigsRequest, call: Call) -> DescribeConfigsResponse:
    if any(resource.resource_type in (ResourceType.TOPIC, ResourceType.BROKER) for resource in request.resources):
        await call.broker.controller.catch_up()  # they may just have been set, at another broker
    answers: dict[tuple[object, ...], DescribeConfigsResult] = {}
    results = []
    async for resource in call.in_turns(request.resources):
        # Whoever names a resource again gets the same answer again, not another one of its size.
        key = (resource.resource_type, resource.resource_name, *(resource.configuration_keys or ()))
        if key not in answers:
            answers[key] = _answer(resource, request, call)
        results.append(answers[key])
    return DescribeConfigsResponse(results=results)


def _answer(resource: DescribeConfigsResource, request: DescribeConfigsRequest, call: Call) -> DescribeConfigsResult:
    try:
        entries = _entries_of(resource, call)
    except Refused as refused:
        return DescribeConfigsResult(
            error_code=refused.code,
            error_message=refused.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
    wanted = frozenset(resource.configuration_keys or ())
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_shown(entry, request) for entry in entries if not wanted or entry.name in wanted],
    )


def _entries_of(resource: DescribeConfigsResource, call: Call) -> list[ConfigEntry]:
    name = resource.resource_name
    match resource.resource_type:
        case ResourceType.TOPIC:
            return describe_topic(name, call.caller, call.broker)
        case ResourceType.BROKER:
            return describe_broker(name, call.caller, call.broker)
        case ResourceType.BROKER_LOGGER if name == str(call.broker.broker_id):
            return []
        case ResourceType.GROUP | ResourceType.CLIENT_METRICS if name:
            return []
        case ResourceType.GROUP | ResourceType.CLIENT_METRICS | ResourceType.BROKER_LOGGER:
            raise Refused(ErrorCode.INVALID_REQUEST, f"nothing of that type is called {name!r} here")
        case other:
            raise Refused(ErrorCode.INVALID_REQUEST, f"resources of type {other} have no settings")


def _shown(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=layer.name, value=layer.value, source=layer.source)
        for layer in entry.layers
        if request.include_synonyms
    ]
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=False,
        synonyms=synonyms,
        config_type=_type_number(entry.setting),
        documentation=entry.setting.doc if request.include_documentation else None,
    )


def _type_number(setting: Setting) -> int:
    """Kafka's number of the kind of value."""
    if setting.kind is int:
        is_wide = setting.at_most is None or setting.at_most > INT32_MAX
        return 5 if is_wide else 3
    return {bool: 1, str: 2, float: 6, tuple: 7}[setting.kind]
