from __future__ import annotations

import pytest

from zurau.api.kafka import create_acls, delete_acls, describe_acls
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_acls import AclCreation, CreateAclsRequest
from zurau.wire.kafka.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from zurau.wire.kafka.messages.describe_acls import DescribeAclsRequest

ANY, TOPIC, READ, ALLOW = 1, 2, 3, 3


@pytest.mark.parametrize("version", [1, 2, 3])
def test_whoever_asks_for_acls_hears_that_there_is_no_authorizer(ask, broker, version):
    request = DescribeAclsRequest(resource_type_filter=ANY, operation=ANY, permission_type=ANY)
    answer = ask(describe_acls, request, version, broker)
    assert (answer.error_code, answer.resources) == (ErrorCode.SECURITY_DISABLED, [])
    assert "no authorizer" in answer.error_message


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_acl_to_be_made_is_refused(ask, broker, version):
    wanted = AclCreation(
        resource_type=TOPIC, resource_name="t", principal="User:a", host="*", operation=READ, permission_type=ALLOW
    )
    answer = ask(create_acls, CreateAclsRequest(creations=[wanted, wanted]), version, broker)
    assert [result.error_code for result in answer.results] == [ErrorCode.SECURITY_DISABLED] * 2


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_filter_of_acls_to_be_deleted_is_refused(ask, broker, version):
    wanted = DeleteAclsFilter(resource_type_filter=ANY, operation=ANY, permission_type=ANY)
    answer = ask(delete_acls, DeleteAclsRequest(filters=[wanted]), version, broker)
    assert [result.error_code for result in answer.filter_results] == [ErrorCode.SECURITY_DISABLED]
