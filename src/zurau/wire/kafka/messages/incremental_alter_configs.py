"""IncrementalAlterConfigs (key 44), versions 0 to 1: change these settings of a topic or broker, and no others."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, boolean, i8, i16, i32, string


class AlterableConfig(Struct):
    name: string
    #: 0: set, 1: delete, 2: append, 3: subtract.
    config_operation: i8
    #: Null: back to the default.
    value: string | None = None


class AlterConfigsResource(Struct):
    #: 2: topic, 4: broker, 8: broker logger.
    resource_type: i8
    resource_name: string
    configs: list[AlterableConfig]


class IncrementalAlterConfigsRequest(Request["IncrementalAlterConfigsResponse"]):
    api_key: ClassVar = 44
    flexible_since: ClassVar = 1

    resources: list[AlterConfigsResource]
    validate_only: boolean = False


class AlterConfigsResourceResponse(Struct, kw_only=True):
    error_code: i16 = 0
    error_message: string | None = None
    resource_type: i8
    resource_name: string


class IncrementalAlterConfigsResponse(Message):
    api_key: ClassVar = 44
    flexible_since: ClassVar = 1

    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse] = []
