"""DescribeCluster (key 60), versions 0 to 2: the brokers, without topics."""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import NOT_ASKED_FOR, Message, Request, Struct, boolean, i8, i16, i32, since, string


class DescribeClusterRequest(Request["DescribeClusterResponse"]):
    api_key: ClassVar = 60
    flexible_since: ClassVar = 0

    include_cluster_authorized_operations: boolean = False
    #: 1: brokers, 2: controllers.
    endpoint_type: Annotated[i8, since(1)] = 1
    include_fenced_brokers: Annotated[boolean, since(2)] = False


class DescribeClusterBroker(Struct):
    broker_id: i32
    host: string
    port: i32
    rack: string | None = None
    is_fenced: Annotated[boolean, since(2)] = False


class DescribeClusterResponse(Message):
    api_key: ClassVar = 60
    flexible_since: ClassVar = 0

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    endpoint_type: Annotated[i8, since(1)] = 1
    cluster_id: string = ""
    controller_id: i32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: i32 = NOT_ASKED_FOR
