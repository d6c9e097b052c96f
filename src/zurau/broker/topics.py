"""Topics made, found and deleted, as every front end does it."""

from __future__ import annotations

from zurau.broker.auto_create import create_missing_topics
from zurau.broker.broker import Broker
from zurau.broker.caller import Caller
from zurau.errors import Refused
from zurau.ids import TopicId
from zurau.machines.controller.commands import CreateTopic, DeleteTopic
from zurau.machines.controller.image import TopicImage
from zurau.machines.controller.names import check_topic_name
from zurau.wire.kafka.error_codes import ErrorCode


async def create_topic(command: CreateTopic, broker: Broker) -> TopicImage:
    """Returns when its partitions can be used. Raises `Refused`."""
    created = await broker.controller.ask(command)
    if not command.validate_only:
        await broker.opened(created.topic_id)
    return created


async def ensure_topic(name: str, caller: Caller, broker: Broker) -> TopicImage:
    """As it is, or made as the broker's settings say, if that makes topics that are asked for. Raises `Refused`."""
    check_topic_name(name)
    refusals = await create_missing_topics([name], caller, broker)
    try:
        return await find_topic(name, broker)
    except Refused as refused:
        raise refusals.get(name, refused) from None


async def find_topic(name: str, broker: Broker) -> TopicImage:
    """Raises `Refused` when there is none, after this broker has caught up: another one may just have made it."""
    is_up_to_date = name in broker.image.topics or await broker.controller.catch_up()
    return require_known(broker.image.topics.get(name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, is_up_to_date)


def require_known(topic: TopicImage | None, missing: ErrorCode, is_up_to_date: bool) -> TopicImage:
    """Raises `Refused`, with `missing` only if this broker knows what anybody was told before."""
    if topic is None and not is_up_to_date:
        raise Refused(ErrorCode.NOT_CONTROLLER, "no controller says whether there is such a topic; ask again")
    if topic is None:
        raise Refused(missing, "there is no such topic")
    return topic


async def delete_topic(topic_id: TopicId, broker: Broker) -> None:
    """Raises `Refused`."""
    if not broker.settings.delete_topic_enable:
        raise Refused(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false on this broker")
    await broker.controller.ask(DeleteTopic(topic_id))
