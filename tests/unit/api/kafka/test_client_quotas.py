from __future__ import annotations

import pytest

from zurau.api.kafka import alter_client_quotas, describe_client_quotas
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    QuotaAlteration,
    QuotaOperation,
)
from zurau.wire.kafka.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest


@pytest.mark.parametrize("version", [0, 1])
def test_nobody_has_a_quota(ask, broker, version):
    answer = ask(describe_client_quotas, DescribeClientQuotasRequest(components=[], strict=False), version, broker)
    assert (answer.error_code, answer.entries) == (ErrorCode.NONE, [])


@pytest.mark.parametrize(
    ("filters", "code"),
    [
        ([("user", 0, "a"), ("client-id", 1, None)], ErrorCode.NONE),
        ([("planet", 0, "mars")], ErrorCode.UNSUPPORTED_VERSION),
        ([("", 0, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 0, "a"), ("user", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("ip", 2, None), ("user", 2, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 0, None)], ErrorCode.INVALID_REQUEST),
        ([("user", 2, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 7, "a")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_filter_that_is_not_clear_is_refused(ask, broker, filters, code):
    components = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in filters]
    request = DescribeClientQuotasRequest(components=components, strict=False)
    assert ask(describe_client_quotas, request, 1, broker).error_code == code


@pytest.mark.parametrize("version", [0, 1])
def test_a_quota_that_nobody_would_enforce_is_refused(ask, broker, version):
    user = [EntityData(entity_type="user", entity_name="a")]
    wanted = QuotaAlteration(entity=user, ops=[QuotaOperation(key="producer_byte_rate", value=1024.5, remove=False)])
    answer = ask(alter_client_quotas, AlterClientQuotasRequest(entries=[wanted], validate_only=False), version, broker)
    (result,) = answer.entries
    assert (result.error_code, result.entity) == (ErrorCode.INVALID_REQUEST, user)
    assert "quotas are not served yet" in result.error_message
