"""Who leads a partition, as Metadata and DescribeTopicPartitions tell it.

A leader is named only when it can serve: a client that is sent to one that cannot would come back at once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from zurau.broker.broker import Broker
from zurau.errors import Refused
from zurau.ids import BrokerId, Epoch
from zurau.machines.controller.image import PartitionImage, TopicImage
from zurau.wire.kafka.error_codes import ErrorCode

NO_LEADER = BrokerId(-1)
NO_EPOCH = -1


class Leadership(NamedTuple):
    error_code: ErrorCode
    leader_id: BrokerId
    leader_epoch: Epoch
    in_sync: list[int]
    offline: list[int]


@lru_cache(maxsize=1024)
def nodes(replicas: tuple[BrokerId, ...]) -> list[int]:
    """As a message has it. One list for all partitions that are alike: an answer may name a hundred thousand."""
    return list(replicas)


def leadership_of(topic: TopicImage, partition: PartitionImage, broker: Broker) -> Leadership:
    try:
        epoch = broker.partition(topic.name, partition.index).leader_epoch
    except Refused:
        return Leadership(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, NO_EPOCH, [], nodes(partition.replicas))
    return Leadership(ErrorCode.NONE, broker.broker_id, epoch, nodes(partition.replicas), [])
