"""DescribeConfigs (key 32), versions 1 to 4: what are the settings of this topic or broker, and where from?"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, boolean, i8, i16, i32, since, string


class DescribeConfigsResource(Struct):
    #: 2: topic, 4: broker, 8: broker logger.
    resource_type: i8
    resource_name: string
    #: Null: all of them.
    configuration_keys: list[string] | None = None


class DescribeConfigsRequest(Request["DescribeConfigsResponse"]):
    api_key: ClassVar = 32
    flexible_since: ClassVar = 4

    resources: list[DescribeConfigsResource]
    include_synonyms: boolean = False
    include_documentation: Annotated[boolean, since(3)] = False


class DescribeConfigsSynonym(Struct, kw_only=True):
    name: string
    value: string | None = None
    source: i8


class DescribeConfigsResourceResult(Struct, kw_only=True):
    name: string
    value: string | None = None
    read_only: boolean
    #: 1: topic, 2: this broker, 3: all brokers, 4: configuration file, 5: default.
    config_source: i8 = -1
    is_sensitive: boolean
    synonyms: list[DescribeConfigsSynonym] = []
    #: 1: boolean, 2: string, 3: int, 4: short, 5: long, 6: double, 7: list, 8: class, 9: password.
    config_type: Annotated[i8, since(3)] = 0
    documentation: Annotated[string | None, since(3)] = None


class DescribeConfigsResult(Struct, kw_only=True):
    error_code: i16 = 0
    error_message: string | None = None
    resource_type: i8
    resource_name: string
    configs: list[DescribeConfigsResourceResult] = []


class DescribeConfigsResponse(Message):
    api_key: ClassVar = 32
    flexible_since: ClassVar = 4

    throttle_time_ms: i32 = 0
    results: list[DescribeConfigsResult] = []
