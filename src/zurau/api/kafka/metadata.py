"""Metadata: the brokers, and who leads which partition. Topics that are missing may be created on the way."""

from __future__ import annotations

from collections.abc import Collection

from zurau.api.kafka import authorized_operations
from zurau.api.kafka.call import Call
from zurau.broker.auto_create import create_missing_topics
from zurau.broker.leadership import addresses, controller_of, is_led, leadership_of, nodes
from zurau.errors import Refused
from zurau.ids import PartitionId, TopicId
from zurau.machines.controller.image import PartitionImage, TopicImage
from zurau.machines.controller.names import check_topic_name
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from zurau.wire.kafka.schema import NOT_ASKED_FOR

#: The first version in which a topic may be asked for by its id.
BY_ID_SINCE = 12


async def handle(request: MetadataRequest, call: Call) -> MetadataResponse:
    broker = call.broker
    if request.topics is None or (call.version == 0 and not request.topics):
        known = list(broker.image.topics.values())
        await _wait_for_leaders(known, call)
        topics = [await _described(topic, request, call) async for topic in call.in_turns(known)]
    else:
        wanted = {(topic.name, topic.topic_id): None async for topic in call.in_turns(request.topics)}
        refusals: dict[str, Refused] = {}
        if request.allow_auto_topic_creation:
            names = [name for name, _ in wanted if name is not None]
            refusals = await create_missing_topics(names, call.caller, broker)
        known = await _known(wanted, call)
        if len(known) < len(wanted):
            await broker.controller.catch_up()
            known = await _known(wanted, call)
        await _wait_for_leaders(known, call)
        topics = [
            await _answer(name, TopicId(topic_id), refusals, request, call)
            async for name, topic_id in call.in_turns(wanted)
        ]
    asks_rights = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each.broker_id, host=each.host, port=each.port, rack=each.rack)
            for each in addresses(broker, call.caller, call.dialled)
        ],
        cluster_id=broker.cluster_id,
        controller_id=controller_of(broker),
        topics=topics,
        cluster_authorized_operations=authorized_operations.ON_CLUSTER if asks_rights else NOT_ASKED_FOR,
    )


async def _known(wanted: Collection[tuple[str | None, bytes]], call: Call) -> list[TopicImage]:
    image = call.broker.image
    found = [
        image.topics.get(name) if name is not None else image.topics_by_id.get(TopicId(topic_id))
        async for name, topic_id in call.in_turns(wanted)
    ]
    return [topic for topic in found if topic is not None]


async def _wait_for_leaders(topics: Collection[TopicImage], call: Call) -> None:
    """While leaders are being elected, for those of these topics."""
    broker = call.broker
    if not broker.elections.are_under_way:
        return
    waiting = [
        PartitionId(topic.topic_id, partition.index)
        async for topic in call.in_turns(topics)
        for partition in topic.partitions
        if not is_led(topic, partition, broker)
    ]

    def is_decided() -> bool:
        while waiting:
            topic_id, index = waiting[-1]
            topic = broker.image.topics_by_id.get(topic_id)  # not by name: it may be another one by now
            if topic is not None and not is_led(topic, topic.partitions[index], broker):
                return False
            waiting.pop()
        return True

    await broker.elections.decided(is_decided)


async def _answer(
    name: str | None, topic_id: TopicId, refusals: dict[str, Refused], request: MetadataRequest, call: Call
) -> MetadataResponseTopic:
    try:
        topic = _find(name, topic_id, refusals, call)
    except Refused as refused:
        # Before topics could be asked for by id, an answer had to have a name.
        shown_name = "" if name is None and call.version < BY_ID_SINCE else name
        return MetadataResponseTopic(error_code=refused.code, name=shown_name, topic_id=topic_id)
    return await _described(topic, request, call)


def _find(name: str | None, topic_id: TopicId, refusals: dict[str, Refused], call: Call) -> TopicImage:
    image = call.broker.image
    if name is None:
        if call.version < BY_ID_SINCE:
            raise Refused(ErrorCode.INVALID_REQUEST)
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
        return topic
    topic = image.topics.get(name)
    if topic is None:
        check_topic_name(name)
        raise refusals.get(name) or Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic


async def _described(topic: TopicImage, request: MetadataRequest, call: Call) -> MetadataResponseTopic:
    asks_rights = request.include_topic_authorized_operations
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            _described_partition(topic, partition, call) async for partition in call.in_turns(topic.partitions)
        ],
        topic_authorized_operations=authorized_operations.ON_TOPIC if asks_rights else NOT_ASKED_FOR,
    )


def _described_partition(topic: TopicImage, partition: PartitionImage, call: Call) -> MetadataResponsePartition:
    leadership = leadership_of(topic, partition, call.broker)
    return MetadataResponsePartition(
        error_code=leadership.error_code,
        partition_index=partition.index,
        leader_id=leadership.leader_id,
        leader_epoch=leadership.leader_epoch,
        replica_nodes=nodes(partition.replicas),
        isr_nodes=leadership.in_sync,
        offline_replicas=leadership.offline,
    )
