"""Who leads a partition and where brokers are, as clients are told.

A leader is named only when it can serve: a client that is sent to one that cannot would come back at once. Of
partitions whose replicas elect their leader, a replica here knows it, or the leader has said so (`known_leaders.py`):
the later epoch counts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from zurau.broker.broker import Broker
from zurau.broker.caller import Caller
from zurau.epochs import NO_EPOCH
from zurau.ids import Address, BrokerId, Epoch, PartitionId, TopicPartition
from zurau.machines.controller.image import PartitionImage, TopicImage
from zurau.wire.kafka.error_codes import ErrorCode

NO_LEADER = BrokerId(-1)


class Leadership(NamedTuple):
    error_code: ErrorCode
    leader_id: BrokerId
    leader_epoch: Epoch
    in_sync: list[int]
    offline: list[int]


class BrokerAddress(NamedTuple):
    broker_id: BrokerId
    host: str
    port: int
    rack: str | None


@lru_cache(maxsize=1024)
def nodes(replicas: tuple[BrokerId, ...]) -> list[int]:
    """As a message has it. One list for all partitions that are alike: an answer may name a hundred thousand."""
    return list(replicas)


def leadership_of(topic: TopicImage, partition: PartitionImage, broker: Broker) -> Leadership:
    leader, epoch = _leader(topic, partition, broker)
    brokers = broker.image.brokers
    offline: list[int] = [each for each in partition.replicas if each not in brokers or brokers[each].is_fenced]
    in_sync: list[int]
    if topic.is_in_sync_mode:
        in_sync = [replica.broker for replica in partition.in_sync]
    elif offline or partition.target:
        in_sync = [each for each in partition.replicas if each not in offline and each not in partition.adding]
    else:
        in_sync = nodes(partition.replicas)
    if leader is None or leader in offline:
        if broker.broker_id in partition.replicas and not is_here(topic, partition, broker):
            offline.append(broker.broker_id)
        there = [each for each in in_sync if each not in offline] if topic.is_in_sync_mode else []
        return Leadership(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, NO_EPOCH, there, offline)
    return Leadership(ErrorCode.NONE, leader, epoch, in_sync, offline)


def is_led(topic: TopicImage, partition: PartitionImage, broker: Broker) -> bool:
    """By somebody who is there, as far as this broker sees."""
    leader = leadership_of(topic, partition, broker).leader_id
    return leader != NO_LEADER and not broker.disconnections.is_lost(leader)


def is_here(topic: TopicImage, partition: PartitionImage, broker: Broker) -> bool:
    return TopicPartition(topic.name, partition.index) in broker.partitions


def _leader(topic: TopicImage, image: PartitionImage, broker: Broker) -> tuple[BrokerId | None, Epoch]:
    partition = broker.partitions.get(TopicPartition(topic.name, image.index))
    if topic.is_in_sync_mode:
        if partition is not None and partition.leader is not None:
            return partition.leader.broker, partition.leader_epoch
        return (None, NO_EPOCH) if image.leader is None else (image.leader.broker, image.leader_epoch)
    known = broker.known_leaders.find(PartitionId(topic.topic_id, image.index))
    if partition is not None and (known is None or partition.leader_epoch >= known.epoch):
        if partition.leader is not None:
            return partition.leader.broker, partition.leader_epoch
        if known is None or partition.leader_epoch > known.epoch:
            return None, NO_EPOCH
    return (None, NO_EPOCH) if known is None else (known.broker, known.epoch)


def controller_of(broker: Broker) -> BrokerId:
    """Who leads the metadata log, as far as this broker knows. While nobody does, this broker, which is as good as any:
    it passes on what it is asked. Clients that are told of no controller wait for one, and librdkafka for minutes."""
    leader = broker.metadata.partition.leader
    return broker.broker_id if leader is None or broker.disconnections.is_lost(leader.broker) else leader.broker


def coordinator_of(group_id: str, broker: Broker) -> BrokerId:
    """Who looks after a group, if that is known."""
    name = broker.groups.partition_of(group_id)
    topic = broker.image.topics[name.topic]
    leader = leadership_of(topic, topic.partitions[name.partition], broker).leader_id
    if leader in (NO_LEADER, broker.broker_id):
        broker.groups_of(group_id)  # which says what is wrong, if something is
        return broker.broker_id
    return leader


def addresses(broker: Broker, caller: Caller, dialled: Address, *, with_fenced: bool = False) -> list[BrokerAddress]:
    """Where clients find the brokers that are there: this one where they dialled it, the others by the listener of the
    same name."""
    found = []
    for image in broker.image.brokers.values():
        if image.broker_id == broker.broker_id:
            found.append(BrokerAddress(image.broker_id, dialled.host, dialled.port, image.rack))
        elif with_fenced or not image.is_fenced:
            listener = next((each for each in image.listeners if each.name == caller.listener), None)
            if listener is not None:
                found.append(BrokerAddress(image.broker_id, listener.host, listener.port, image.rack))
    return found
