"""DescribeQuorum: who keeps the metadata log. Here it is one voter, which is the leader and has everything."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.broker.metadata_log import METADATA_PARTITION
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    QuorumPartition,
    QuorumTopic,
    ReplicaState,
    TopicData,
)

METADATA_LOG = QuorumTopic(
    topic_name=METADATA_PARTITION.topic, partitions=[QuorumPartition(partition_index=METADATA_PARTITION.partition)]
)


async def handle(request: DescribeQuorumRequest, call: Call) -> DescribeQuorumResponse:
    if request.topics != [METADATA_LOG]:
        refused = [await _not_kept_by_a_quorum(topic, call) async for topic in call.in_turns(request.topics)]
        return DescribeQuorumResponse(topics=refused)
    topic = TopicData(topic_name=METADATA_PARTITION.topic, partitions=[_describe(call)])
    listener = Listener(name="PLAINTEXT", host=call.dialled.host, port=call.dialled.port)
    return DescribeQuorumResponse(topics=[topic], nodes=[Node(node_id=call.broker.broker_id, listeners=[listener])])


async def _not_kept_by_a_quorum(topic: QuorumTopic, call: Call) -> TopicData:
    """As in Kafka, whoever asks for anything besides the metadata log is told nothing of it either."""
    return TopicData(
        topic_name=topic.topic_name,
        partitions=[
            PartitionData(
                partition_index=one.partition_index,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                error_message=f"only {METADATA_PARTITION.topic}-{METADATA_PARTITION.partition} is kept by a quorum",
                leader_id=0,
                leader_epoch=0,
                high_watermark=0,
            )
            async for one in call.in_turns(topic.partitions)
        ],
    )


def _describe(call: Call) -> PartitionData:
    broker = call.broker
    metadata = broker.partitions[METADATA_PARTITION]
    now_ms = broker.clock.now_ms()
    itself = ReplicaState(
        replica_id=broker.broker_id,
        replica_directory_id=broker.identity.directory_id,
        log_end_offset=metadata.log.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return PartitionData(
        partition_index=METADATA_PARTITION.partition,
        leader_id=broker.broker_id,
        leader_epoch=metadata.leader_epoch,
        high_watermark=metadata.high_watermark,
        current_voters=[itself],
    )
