"""AlterReplicaLogDirs (key 34), versions 1 and 2: keep these replicas in another directory of this broker."""

from __future__ import annotations

from typing import ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, string


class AlterReplicaLogDirTopic(Struct):
    name: string
    partitions: list[i32]


class AlterReplicaLogDir(Struct):
    path: string
    topics: list[AlterReplicaLogDirTopic]


class AlterReplicaLogDirsRequest(Request["AlterReplicaLogDirsResponse"]):
    api_key: ClassVar = 34
    flexible_since: ClassVar = 2

    dirs: list[AlterReplicaLogDir]


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: i32
    error_code: i16 = 0


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: string
    partitions: list[AlterReplicaLogDirPartitionResult] = []


class AlterReplicaLogDirsResponse(Message):
    api_key: ClassVar = 34
    flexible_since: ClassVar = 2

    throttle_time_ms: i32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
