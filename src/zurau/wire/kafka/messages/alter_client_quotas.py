"""AlterClientQuotas (key 49), versions 0 and 1: let users and clients use so much."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, boolean, f64, i16, i32, string


class EntityData(Struct):
    entity_type: string
    #: Null: the default.
    entity_name: string | None = None


class QuotaOperation(Struct):
    key: string
    value: f64
    remove: boolean


class QuotaAlteration(Struct):
    entity: list[EntityData]
    ops: list[QuotaOperation]


class AlterClientQuotasRequest(Request["AlterClientQuotasResponse"]):
    api_key: ClassVar = 49
    flexible_since: ClassVar = 1

    entries: list[QuotaAlteration]
    validate_only: boolean


class QuotaAlterationResult(Struct):
    error_code: i16 = 0
    error_message: string | None = None
    entity: list[EntityData] = []


class AlterClientQuotasResponse(Message):
    api_key: ClassVar = 49
    flexible_since: ClassVar = 1

    throttle_time_ms: i32 = 0
    entries: list[QuotaAlterationResult] = []
