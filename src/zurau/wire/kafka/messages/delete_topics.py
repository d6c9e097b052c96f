"""DeleteTopics (key 20), versions 1 to 6. Version 6 names topics by id too, so the list has another shape there."""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.ids import NO_TOPIC_ID
from zurau.wire.kafka.schema import Message, Request, Struct, i16, i32, nullable_since, since, string, until, uuid


class DeleteTopicState(Struct):
    #: Null: by id.
    name: string | None = None
    topic_id: uuid = NO_TOPIC_ID


class DeleteTopicsRequest(Request["DeleteTopicsResponse"], kw_only=True):
    api_key: ClassVar = 20
    flexible_since: ClassVar = 4

    topics: Annotated[list[DeleteTopicState], since(6)] = []
    topic_names: Annotated[list[string], until(5)] = []
    timeout_ms: i32


class DeletableTopicResult(Struct):
    #: Null: deleted by an id that nobody knows.
    name: Annotated[string | None, nullable_since(6)]
    topic_id: Annotated[uuid, since(6)] = NO_TOPIC_ID
    error_code: i16 = 0
    error_message: Annotated[string | None, since(5)] = None


class DeleteTopicsResponse(Message):
    api_key: ClassVar = 20
    flexible_since: ClassVar = 4

    throttle_time_ms: i32 = 0
    responses: list[DeletableTopicResult] = []
