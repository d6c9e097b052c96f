from __future__ import annotations

import pytest

from zurau.api.kafka import describe_quorum
from zurau.broker.metadata_log import METADATA_PARTITION
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_quorum import DescribeQuorumRequest, QuorumPartition, QuorumTopic


def describe(ask, broker, topic, index, version):
    wanted = QuorumTopic(topic_name=topic, partitions=[QuorumPartition(partition_index=index)])
    return ask(describe_quorum, DescribeQuorumRequest(topics=[wanted]), version, broker)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_only_voter_leads_the_metadata_log_and_has_all_of_it(ask, broker, version):
    answer = describe(ask, broker, "__cluster_metadata", 0, version)
    (quorum,) = answer.topics[0].partitions
    metadata = broker.partitions[METADATA_PARTITION]
    assert (quorum.error_code, quorum.leader_id, quorum.leader_epoch) == (0, 1, metadata.leader_epoch)
    assert [(voter.replica_id, voter.log_end_offset) for voter in quorum.current_voters] == [
        (1, metadata.log.end_offset)
    ]
    assert quorum.high_watermark == metadata.high_watermark > 0


def test_the_voter_is_named_with_its_disk_and_its_address(ask, broker):
    answer = describe(ask, broker, "__cluster_metadata", 0, 2)
    assert answer.topics[0].partitions[0].current_voters[0].replica_directory_id == broker.identity.directory_id
    (node,) = answer.nodes
    assert [(listener.host, listener.port) for listener in node.listeners] == [("broker.example", 9092)]


@pytest.mark.parametrize(("topic", "index"), [("__cluster_metadata", 1), ("orders", 0)])
def test_nothing_else_is_kept_by_a_quorum(ask, broker, topic, index):
    (quorum,) = describe(ask, broker, topic, index, 2).topics[0].partitions
    assert (quorum.error_code, quorum.current_voters) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
