"""DeleteTopics: by name or, from version 6 on, by id."""

from __future__ import annotations

from zurau.api.kafka.administration import change_each
from zurau.api.kafka.call import Call
from zurau.api.kafka.repeated import named_twice, repeated
from zurau.broker.topics import delete_topic, require_known
from zurau.errors import Refused
from zurau.ids import NO_TOPIC_ID, TopicId
from zurau.machines.controller.image import TopicImage
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

BY_ID_SINCE = 6
DELETION_DISABLED_SINCE = 3


async def handle(request: DeleteTopicsRequest, call: Call) -> DeleteTopicsResponse:
    wanted = request.topics
    if call.version < BY_ID_SINCE:
        wanted = [DeleteTopicState(name=name) async for name in call.in_turns(request.topic_names)]
    twice = await repeated([(topic.name, topic.topic_id) for topic in wanted], call)
    once = [topic async for topic in call.in_turns(wanted) if (topic.name, topic.topic_id) not in twice]
    is_up_to_date = True
    if any(_known(topic, call) is None for topic in once):
        is_up_to_date = await call.broker.controller.catch_up()
    changes = await change_each(once, lambda topic: _delete(topic, is_up_to_date, call), request.timeout_ms, call)
    results = [
        _refused(topic.name, topic.topic_id, change) if isinstance(change, Refused) else change
        for topic, change in zip(once, changes, strict=True)
    ]
    refusals = [_refused(name, topic_id, named_twice()) for name, topic_id in twice]
    return DeleteTopicsResponse(responses=results + refusals)


async def _delete(wanted: DeleteTopicState, is_up_to_date: bool, call: Call) -> DeletableTopicResult:
    name, topic_id = wanted.name, wanted.topic_id
    try:
        topic = _find(wanted, is_up_to_date, call)
        name, topic_id = topic.name, topic.topic_id
        await delete_topic(topic.topic_id, call.broker)
    except Refused as refused:
        if refused.code == ErrorCode.TOPIC_DELETION_DISABLED and call.version < DELETION_DISABLED_SINCE:
            refused = Refused(ErrorCode.INVALID_REQUEST, refused.message)
        if wanted.name is not None and refused.code == ErrorCode.UNKNOWN_TOPIC_ID:
            # Somebody else deletes it: that is decided, though not yet to be seen.
            refused = Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, refused.message)
        return _refused(name, topic_id, refused)
    return DeletableTopicResult(name=name, topic_id=topic_id)


def _refused(name: str | None, topic_id: bytes, refused: Refused) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=refused.code, error_message=refused.message)


def _find(wanted: DeleteTopicState, is_up_to_date: bool, call: Call) -> TopicImage:
    by_name, by_id = wanted.name is not None, wanted.topic_id != NO_TOPIC_ID
    if by_name == by_id:
        raise Refused(ErrorCode.INVALID_REQUEST, "name the topic or give its id, one of the two")
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if by_name else ErrorCode.UNKNOWN_TOPIC_ID
    return require_known(_known(wanted, call), missing, is_up_to_date)


def _known(wanted: DeleteTopicState, call: Call) -> TopicImage | None:
    image = call.broker.image
    return image.topics_by_id.get(TopicId(wanted.topic_id)) if wanted.name is None else image.topics.get(wanted.name)
