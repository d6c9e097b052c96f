"""InitProducerId (key 22), versions 0 to 5: give me an identity, so that my retries are known for what they are."""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, i16, i32, i64, since, string


class InitProducerIdRequest(Request["InitProducerIdResponse"], kw_only=True):
    api_key: ClassVar = 22
    flexible_since: ClassVar = 2

    #: Null: idempotent only.
    transactional_id: string | None = None
    transaction_timeout_ms: i32
    #: The identity to renew; -1: there is none yet.
    producer_id: Annotated[i64, since(3)] = -1
    producer_epoch: Annotated[i16, since(3)] = -1


class InitProducerIdResponse(Message):
    api_key: ClassVar = 22
    flexible_since: ClassVar = 2

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = -1
    producer_epoch: i16 = -1
