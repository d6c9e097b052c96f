"""What somebody is told who is refused: a status, a code for programs, and a sentence for people."""

from __future__ import annotations

from enum import IntEnum
from http import HTTPStatus

import msgspec

from zurau.api.http.messages import HttpAnswer, Refusal
from zurau.errors import Refused
from zurau.wire.kafka.error_codes import ErrorCode

#: Where Kafka's codes have a status that says the same. Others: 503 when trying again may help, or else 400.
_STATUS: dict[IntEnum, HTTPStatus] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: HTTPStatus.INTERNAL_SERVER_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: HTTPStatus.NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_ID: HTTPStatus.NOT_FOUND,
    ErrorCode.UNKNOWN_PRODUCER_ID: HTTPStatus.NOT_FOUND,
    ErrorCode.UNKNOWN_MEMBER_ID: HTTPStatus.NOT_FOUND,
    ErrorCode.TOPIC_ALREADY_EXISTS: HTTPStatus.CONFLICT,
    ErrorCode.OFFSET_OUT_OF_RANGE: HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
    ErrorCode.MESSAGE_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: HTTPStatus.FORBIDDEN,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: HTTPStatus.FORBIDDEN,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: HTTPStatus.FORBIDDEN,
    ErrorCode.TOPIC_DELETION_DISABLED: HTTPStatus.FORBIDDEN,
    ErrorCode.REQUEST_TIMED_OUT: HTTPStatus.GATEWAY_TIMEOUT,
    ErrorCode.BROKER_NOT_AVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}

#: What to do about it, where the sentence of the operation cannot say it.
_ADVICE: dict[IntEnum, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "GET /topics lists what there is, and POST /topics makes one",
    ErrorCode.UNKNOWN_PRODUCER_ID: "POST /producer/register gives out one for a topic",
    ErrorCode.UNKNOWN_MEMBER_ID: "POST /consumer/register gives out one for a topic",
    ErrorCode.MESSAGE_TOO_LARGE: "send less at a time, or raise max.message.bytes of the topic",
    ErrorCode.TOPIC_ALREADY_EXISTS: "use it, or choose another name",
}


def refusal(refused: Refused, *, is_last: bool = False, headers: tuple[tuple[str, str], ...] = ()) -> HttpAnswer:
    code = refused.code
    message = refused.message or (code.message if isinstance(code, ErrorCode) else HTTPStatus(code).description)
    if code in _ADVICE:
        message = f"{message}; {_ADVICE[code]}"
    body = msgspec.json.encode(Refusal(code=code.name, message=message))
    return HttpAnswer(status_of(code), body, headers=headers, is_last=is_last)


def status_of(code: IntEnum) -> HTTPStatus:
    if isinstance(code, HTTPStatus):
        return code
    known = _STATUS.get(code)
    if known is not None:
        return known
    is_retriable = isinstance(code, ErrorCode) and code.retriable
    return HTTPStatus.SERVICE_UNAVAILABLE if is_retriable else HTTPStatus.BAD_REQUEST
