"""Topics that brokers make for themselves."""

from __future__ import annotations

from zurau.broker.settings import BrokerSettings
from zurau.ids import TopicId
from zurau.machines.controller.commands import CreateTopic
from zurau.machines.controller.names import OFFSETS_TOPIC
from zurau.ports import Randomness

#: Copies of the groups' offsets, where there are brokers enough.
OFFSETS_REPLICATION_FACTOR = 3


def offsets_topic(settings: BrokerSettings, randomness: Randomness, brokers: int) -> CreateTopic:
    """The topic that holds consumer groups, in a cluster of so many brokers."""
    return CreateTopic(
        name=OFFSETS_TOPIC,
        topic_id=TopicId(randomness.bytes(16)),
        partition_count=settings.offsets_topic_num_partitions,
        replication_factor=min(OFFSETS_REPLICATION_FACTOR, brokers),
        configs={
            "cleanup.policy": "compact",
            "segment.bytes": str(settings.offsets_topic_segment_bytes),
        },
        by_broker=True,
    )
