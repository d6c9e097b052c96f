"""ListConfigResources (key 74), versions 0 and 1: what has settings?"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i8, i16, i32, since, string


class ListConfigResourcesRequest(Request["ListConfigResourcesResponse"]):
    api_key: ClassVar = 74
    flexible_since: ClassVar = 0

    #: Empty: every type there is.
    resource_types: Annotated[list[i8], since(1)] = []


class ConfigResource(Struct):
    resource_name: string
    #: 2: topic, 4: broker, 8: broker logger, 16: client metrics, 32: group.
    resource_type: Annotated[i8, since(1)] = 16


class ListConfigResourcesResponse(Message):
    api_key: ClassVar = 74
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    config_resources: list[ConfigResource] = []
