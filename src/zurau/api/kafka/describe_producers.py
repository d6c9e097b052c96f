"""DescribeProducers: which idempotent producers a partition remembers."""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.errors import Refused
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


async def handle(request: DescribeProducersRequest, call: Call) -> DescribeProducersResponse:
    # Whoever names a partition again gets the same answer again, not another one of its size.
    described: dict[tuple[str, int], PartitionResponse] = {}
    async for topic in call.in_turns(request.topics):
        async for index in call.in_turns(topic.partition_indexes):
            if (topic.name, index) not in described:
                described[topic.name, index] = await _describe(topic.name, index, call)
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[described[topic.name, index] async for index in call.in_turns(topic.partition_indexes)],
            )
            async for topic in call.in_turns(request.topics)
        ]
    )


async def _describe(topic: str, index: int, call: Call) -> PartitionResponse:
    try:
        partition = call.broker.partition(topic, index)
    except Refused as refused:
        return PartitionResponse(
            partition_index=index, error_code=refused.code, error_message=refused.message, active_producers=[]
        )
    return PartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.batches[-1].last_sequence if producer.batches else -1,
                last_timestamp=producer.batches[-1].timestamp if producer.batches else -1,
                coordinator_epoch=-1,
            )
            async for producer_id, producer in call.in_turns(list(partition.producers.items()))
        ],
    )
