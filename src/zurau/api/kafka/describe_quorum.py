"""DescribeQuorum: who keeps the metadata log: voters, and brokers that only follow."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.broker.leadership import addresses, controller_of
from zurau.broker.metadata_log import METADATA_PARTITION
from zurau.ids import ReplicaId
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_quorum import (
    NO_DIRECTORY_ID,
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
    nodes = [
        Node(node_id=each.broker_id, listeners=[Listener(name=call.caller.listener, host=each.host, port=each.port)])
        for each in addresses(call.broker, call.caller, call.dialled, with_fenced=True)
    ]
    return DescribeQuorumResponse(topics=[topic], nodes=nodes)


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
    """The leader knows how far everybody is. Another broker knows who votes, and of others only what is committed."""
    broker = call.broker
    metadata = broker.metadata.partition
    core = metadata.shell.core
    voters = set(core.membership.voters)
    followers = core.followers
    now_ms, monotonic_ms = broker.clock.now_ms(), broker.clock.monotonic_ms()

    def state_of(replica: ReplicaId) -> ReplicaState:
        known = broker.image.brokers.get(replica.broker)
        progress = followers.get(replica)
        end, asked, caught_up = metadata.high_watermark, -1, -1
        if replica == core.id:
            end, asked, caught_up = metadata.log.end_offset, now_ms, now_ms
        elif progress is not None:
            end = max(0, progress.position.offset)
            asked = now_ms - max(0, int(monotonic_ms) - progress.asked_ms)
            caught_up = now_ms - max(0, int(monotonic_ms) - progress.caught_up_ms)
        return ReplicaState(
            replica_id=replica.broker,
            replica_directory_id=known.directory_id if known is not None else NO_DIRECTORY_ID,
            log_end_offset=end,
            last_fetch_timestamp=asked,
            last_caught_up_timestamp=caught_up,
        )

    others = {each.metadata_replica for each in broker.image.brokers.values()} - voters
    return PartitionData(
        partition_index=METADATA_PARTITION.partition,
        leader_id=controller_of(broker),
        leader_epoch=metadata.leader_epoch,
        high_watermark=metadata.high_watermark,
        current_voters=[state_of(each) for each in sorted(voters)],
        observers=[state_of(each) for each in sorted(others)],
    )
