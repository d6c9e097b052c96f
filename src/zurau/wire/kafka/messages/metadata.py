"""Metadata (key 3), versions 0 to 13: who are the brokers, and who leads which partition?

Version 0 asks for all topics with an empty list; later versions with null. Topic ids arrive with version 10, and from
version 12 on a topic may be asked for by id alone.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.ids import NO_TOPIC_ID
from zurau.wire.kafka.schema import (
    NOT_ASKED_FOR,
    Message,
    Request,
    Struct,
    between,
    boolean,
    i16,
    i32,
    nullable_since,
    since,
    string,
    uuid,
)


class MetadataRequestTopic(Struct, kw_only=True):
    topic_id: Annotated[uuid, since(10)] = NO_TOPIC_ID
    #: Null: ask by id.
    name: Annotated[string | None, nullable_since(10)]


class MetadataRequest(Request["MetadataResponse"]):
    api_key: ClassVar = 3
    flexible_since: ClassVar = 9

    #: Null: all of them.
    topics: Annotated[list[MetadataRequestTopic] | None, nullable_since(1)]
    allow_auto_topic_creation: Annotated[boolean, since(4)] = True
    include_cluster_authorized_operations: Annotated[boolean, between(8, 10)] = False
    include_topic_authorized_operations: Annotated[boolean, since(8)] = False


class MetadataResponseBroker(Struct):
    node_id: i32
    host: string
    port: i32
    rack: Annotated[string | None, since(1)] = None


class MetadataResponsePartition(Struct, kw_only=True):
    error_code: i16 = 0
    partition_index: i32
    leader_id: i32
    leader_epoch: Annotated[i32, since(7)] = -1
    replica_nodes: list[i32] = []
    isr_nodes: list[i32] = []
    offline_replicas: Annotated[list[i32], since(5)] = []


class MetadataResponseTopic(Struct, kw_only=True):
    error_code: i16 = 0
    #: Null: asked for by an id that nobody knows.
    name: Annotated[string | None, nullable_since(12)]
    topic_id: Annotated[uuid, since(10)] = NO_TOPIC_ID
    is_internal: Annotated[boolean, since(1)] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[i32, since(8)] = NOT_ASKED_FOR


class MetadataResponse(Message):
    api_key: ClassVar = 3
    flexible_since: ClassVar = 9

    throttle_time_ms: Annotated[i32, since(3)] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[string | None, since(2)] = None
    controller_id: Annotated[i32, since(1)] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[i32, between(8, 10)] = NOT_ASKED_FOR
    #: Version 13: the whole request failed and the client should find other brokers.
    error_code: Annotated[i16, since(13)] = 0
