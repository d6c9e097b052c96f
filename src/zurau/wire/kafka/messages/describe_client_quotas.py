"""DescribeClientQuotas (key 48), versions 0 and 1: how much may these users and clients use?"""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, boolean, f64, i8, i16, i32, string


class ComponentData(Struct):
    entity_type: string
    #: 0: this name, 1: the default, 2: any name.
    match_type: i8
    match: string | None = None


class DescribeClientQuotasRequest(Request["DescribeClientQuotasResponse"]):
    api_key: ClassVar = 48
    flexible_since: ClassVar = 1

    components: list[ComponentData]
    strict: boolean


class EntityData(Struct):
    entity_type: string
    entity_name: string | None = None


class ValueData(Struct):
    key: string
    value: f64


class EntryData(Struct):
    entity: list[EntityData] = []
    values: list[ValueData] = []


class DescribeClientQuotasResponse(Message):
    api_key: ClassVar = 48
    flexible_since: ClassVar = 1

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    entries: list[EntryData] | None = None
