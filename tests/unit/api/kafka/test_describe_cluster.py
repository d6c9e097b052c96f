from __future__ import annotations

import pytest

from zurau.api.kafka import describe_cluster
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_cluster import DescribeClusterRequest


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_this_broker_where_the_client_dialled_it(ask, broker, version):
    response = ask(describe_cluster, DescribeClusterRequest(), version, broker)
    assert (response.error_code, response.cluster_id, response.controller_id) == (0, broker.cluster_id, 1)
    assert [(node.broker_id, node.host, node.port) for node in response.brokers] == [(1, "broker.example", 9092)]


def test_separate_controllers_are_refused(ask, broker):
    response = ask(describe_cluster, DescribeClusterRequest(endpoint_type=2), 1, broker)
    assert response.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


def test_rights_are_told_only_when_asked_for_by_the_client(ask, broker):
    unasked = ask(describe_cluster, DescribeClusterRequest(), 0, broker)
    asked = ask(describe_cluster, DescribeClusterRequest(include_cluster_authorized_operations=True), 0, broker)
    assert unasked.cluster_authorized_operations < 0 < asked.cluster_authorized_operations
