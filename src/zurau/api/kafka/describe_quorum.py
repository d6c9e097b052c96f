"""DescribeQuorum: who keeps the metadata log. Here it is one voter, which is the leader and has everything."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.broker.broker import METADATA_PARTITION
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

NO_LEADER = -1


async def handle(request: DescribeQuorumRequest, call: Call) -> DescribeQuorumResponse:
    topics = [
        TopicData(
            topic_name=topic.topic_name,
            partitions=[_describe(topic.topic_name, wanted.partition_index, call) for wanted in topic.partitions],
        )
        for topic in request.topics
    ]
    listener = Listener(name="PLAINTEXT", host=call.dialled.host, port=call.dialled.port)
    return DescribeQuorumResponse(topics=topics, nodes=[Node(node_id=call.broker.broker_id, listeners=[listener])])


def _describe(topic: str, index: int, call: Call) -> PartitionData:
    if (topic, index) != METADATA_PARTITION:
        return PartitionData(
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"only {METADATA_PARTITION.topic}-{METADATA_PARTITION.partition} is kept by a quorum",
            leader_id=NO_LEADER,
            leader_epoch=-1,
            high_watermark=-1,
        )
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
        partition_index=index,
        leader_id=broker.broker_id,
        leader_epoch=metadata.leader_epoch,
        high_watermark=metadata.high_watermark,
        current_voters=[itself],
    )
