"""Metadata: the brokers, and who leads which partition. Topics that are missing may be created on the way."""

from __future__ import annotations

from collections.abc import Sequence

from zurau.api.kafka import authorized_operations
from zurau.api.kafka.call import Call
from zurau.api.kafka.leadership import leadership_of, nodes
from zurau.errors import Refused
from zurau.ids import TopicId
from zurau.machines.controller.commands import CreateTopic
from zurau.machines.controller.image import PartitionImage, TopicImage
from zurau.machines.controller.names import check_topic_name, is_internal, is_lawful
from zurau.pending import all_of
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
#: Topics that one request creates; clients ask again for the others, as they do until a new topic has its leaders.
AUTO_CREATED_MAX = 500


async def handle(request: MetadataRequest, call: Call) -> MetadataResponse:
    broker = call.broker
    if request.topics is None or (call.version == 0 and not request.topics):
        known = list(broker.image.topics.values())
        topics = [await _described(topic, request, call) async for topic in call.in_turns(known)]
    else:
        wanted = {(topic.name, topic.topic_id): None async for topic in call.in_turns(request.topics)}
        refusals = await _create_missing([name for name, _ in wanted if name is not None], request, call)
        topics = [
            await _answer(name, TopicId(topic_id), refusals, request, call)
            async for name, topic_id in call.in_turns(wanted)
        ]
    asks_rights = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=broker.broker_id, host=call.dialled.host, port=call.dialled.port)],
        cluster_id=broker.cluster_id,
        controller_id=broker.broker_id,
        topics=topics,
        cluster_authorized_operations=authorized_operations.ON_CLUSTER if asks_rights else NOT_ASKED_FOR,
    )


async def _create_missing(names: Sequence[str], request: MetadataRequest, call: Call) -> dict[str, Refused]:
    """Create what is not there, if client and broker agree to that; returns what could not be created and why."""
    broker = call.broker
    if not (request.allow_auto_topic_creation and broker.settings.auto_create_topics_enable):
        return {}
    missing = [
        name
        async for name in call.in_turns(names)
        if name not in broker.image.topics and not is_internal(name) and is_lawful(name)
    ]
    asked = {
        name: broker.controller.ask(CreateTopic(name, TopicId(broker.randomness.bytes(16))))
        async for name in call.in_turns(missing[:AUTO_CREATED_MAX])
    }
    await all_of(asked.values())
    refusals = dict.fromkeys(missing[AUTO_CREATED_MAX:], Refused(ErrorCode.LEADER_NOT_AVAILABLE, "ask again"))
    for name, created in asked.items():
        try:
            await call.broker.opened(created.result().topic_id)
        except Refused as refused:
            refusals[name] = refused
    return refusals


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
