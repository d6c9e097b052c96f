"""AlterReplicaLogDirs: a broker has one directory, so a replica can only be told to stay in it."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.ids import TopicPartition
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


async def handle(request: AlterReplicaLogDirsRequest, call: Call) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=index, error_code=_check(wanted.path, TopicPartition(topic.name, index), call)
                    )
                    async for index in call.in_turns(topic.partitions)
                ],
            )
            async for wanted in call.in_turns(request.dirs)
            async for topic in call.in_turns(wanted.topics)
        ]
    )


def _check(path: str, name: TopicPartition, call: Call) -> ErrorCode:
    if path != str(call.broker.world.disk.root):
        return ErrorCode.LOG_DIR_NOT_FOUND
    return ErrorCode.NONE if name in call.broker.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
