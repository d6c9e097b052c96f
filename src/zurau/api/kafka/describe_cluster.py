"""DescribeCluster: the brokers and the controller, without topics."""

from __future__ import annotations

from zurau.api.kafka import authorized_operations
from zurau.api.kafka.call import Call
from zurau.broker.leadership import addresses, controller_of
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from zurau.wire.kafka.schema import NOT_ASKED_FOR

BROKERS = 1


async def handle(request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
    broker = call.broker
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="there are no separate controllers here: every broker can be asked",
            endpoint_type=request.endpoint_type,
        )
    asks_rights = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=controller_of(broker),
        brokers=[
            DescribeClusterBroker(
                broker_id=each.broker_id,
                host=each.host,
                port=each.port,
                rack=each.rack,
                is_fenced=broker.image.brokers[each.broker_id].is_fenced,
            )
            for each in addresses(broker, call.caller, call.dialled, with_fenced=request.include_fenced_brokers)
        ],
        cluster_authorized_operations=authorized_operations.ON_CLUSTER if asks_rights else NOT_ASKED_FOR,
    )
