"""CreateTopics (key 19), versions 2 to 7."""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.ids import NO_TOPIC_ID
from zurau.wire.kafka.schema import Message, Request, Struct, boolean, i8, i16, i32, since, string, tagged, uuid


class CreatableReplicaAssignment(Struct):
    partition_index: i32
    broker_ids: list[i32]


class CreatableTopicConfig(Struct):
    name: string
    value: string | None = None


class CreatableTopic(Struct):
    name: string
    #: -1: the broker's default.
    num_partitions: i32 = -1
    #: -1: the broker's default.
    replication_factor: i16 = -1
    #: Empty: the broker chooses.
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


class CreateTopicsRequest(Request["CreateTopicsResponse"]):
    api_key: ClassVar = 19
    flexible_since: ClassVar = 5

    topics: list[CreatableTopic]
    timeout_ms: i32 = 60000
    validate_only: boolean = False


class CreatableTopicConfigs(Struct, kw_only=True):
    name: string
    value: string | None = None
    read_only: boolean
    config_source: i8 = -1
    is_sensitive: boolean


class CreatableTopicResult(Struct):
    name: string
    topic_id: Annotated[uuid, since(7)] = NO_TOPIC_ID
    error_code: i16 = 0
    error_message: string | None = None
    #: Why `configs` is null.
    topic_config_error_code: Annotated[i16, tagged(0, since=5)] = 0
    num_partitions: Annotated[i32, since(5)] = -1
    replication_factor: Annotated[i16, since(5)] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, since(5)] = None


class CreateTopicsResponse(Message):
    api_key: ClassVar = 19
    flexible_since: ClassVar = 5

    throttle_time_ms: i32 = 0
    topics: list[CreatableTopicResult] = []
