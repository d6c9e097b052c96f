from __future__ import annotations

import pytest

from zurau.api.kafka import alter_partition_reassignments, alter_replica_log_dirs, list_partition_reassignments
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from zurau.wire.kafka.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from zurau.wire.kafka.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

OFFSETS = "__consumer_offsets"


def test_nothing_is_being_moved(ask, broker):
    answer = ask(list_partition_reassignments, ListPartitionReassignmentsRequest(), 0, broker)
    assert (answer.error_code, answer.topics) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("topic", "replicas", "code"),
    [
        (OFFSETS, [1], ErrorCode.NONE),
        (OFFSETS, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (OFFSETS, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (OFFSETS, [1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (OFFSETS, [2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("nowhere", [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_where_only_one_broker_is_a_partition_can_only_stay_there(ask, broker, version, topic, replicas, code):
    wanted = ReassignableTopic(name=topic, partitions=[ReassignablePartition(partition_index=0, replicas=replicas)])
    answer = ask(alter_partition_reassignments, AlterPartitionReassignmentsRequest(topics=[wanted]), version, broker)
    assert [one.error_code for one in answer.responses[0].partitions] == [code]


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_can_only_stay_in_the_brokers_directory(ask, broker, version, tmp_path):
    def move(path, topic):
        wanted = AlterReplicaLogDir(path=str(path), topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0])])
        answer = ask(alter_replica_log_dirs, AlterReplicaLogDirsRequest(dirs=[wanted]), version, broker)
        return answer.results[0].partitions[0].error_code

    assert move(tmp_path, OFFSETS) == ErrorCode.NONE
    assert move(tmp_path, "nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert move("/elsewhere", OFFSETS) == ErrorCode.LOG_DIR_NOT_FOUND
