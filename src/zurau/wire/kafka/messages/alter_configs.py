"""AlterConfigs (key 33), versions 0 to 2: replace all settings of a topic or broker.

What is not named goes back to its default, which is why `IncrementalAlterConfigs` took its place.
"""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, boolean, i8, i16, i32, string


class AlterableConfig(Struct):
    name: string
    #: Null: back to the default.
    value: string | None = None


class AlterConfigsResource(Struct):
    #: 2: topic, 4: broker, 8: broker logger.
    resource_type: i8
    resource_name: string
    configs: list[AlterableConfig]


class AlterConfigsRequest(Request["AlterConfigsResponse"]):
    api_key: ClassVar = 33
    flexible_since: ClassVar = 2

    resources: list[AlterConfigsResource]
    validate_only: boolean = False


class AlterConfigsResourceResponse(Struct, kw_only=True):
    error_code: i16 = 0
    error_message: string | None = None
    resource_type: i8
    resource_name: string


class AlterConfigsResponse(Message):
    api_key: ClassVar = 33
    flexible_since: ClassVar = 2

    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse] = []
