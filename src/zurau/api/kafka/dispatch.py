"""From a frame to the bytes that answer it.

Handlers and their messages are imported when they are first asked for, so that a broker starts quickly and holds only
what its clients use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import cache
from importlib import import_module
from typing import Any, cast

from zurau.api.kafka.call import Call, Caller
from zurau.api.turns import finish_in_turns
from zurau.broker.broker import Broker
from zurau.pending import Pending, done, start
from zurau.ports import Buffer
from zurau.settings import KIB
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.frames import (
    RequestHeader,
    UnsupportedVersion,
    api_key_of,
    decode_request,
    decode_request_in_steps,
    encode_response,
    encode_response_in_steps,
)
from zurau.wire.kafka.schema import Message

API_VERSIONS = 18
PRODUCE = 0
#: From this size on, requests without records are decoded, and their answers encoded, in turns. A smaller one may
#: list a thousand things, which takes about a millisecond.
LARGE_BYTES = 4 * KIB

Handler = Callable[[Any, Call], Awaitable[Any]]
#: The bytes to send, in pieces; empty when the client wants no answer.
Answer = list[Buffer]


def answer(frame: memoryview, caller: Caller, broker: Broker) -> tuple[RequestHeader, Pending[Answer]]:
    """Start to answer a request. Raises `ProtocolViolation` for one that cannot be understood."""
    try:
        if len(frame) > LARGE_BYTES and api_key_of(frame) != PRODUCE:
            header, steps = decode_request_in_steps(frame)
            return header, start(_respond_in_turns(header, steps, _call(header, caller, broker)), caller.resume)
        header, request = decode_request(frame)
    except UnsupportedVersion as unsupported:
        if unsupported.header.api_key != API_VERSIONS:
            raise
        return unsupported.header, done(_offer_version_zero(unsupported.header))
    return header, start(_respond(header, request, _call(header, caller, broker)), caller.resume)


def _call(header: RequestHeader, caller: Caller, broker: Broker) -> Call:
    return Call(broker, header.api_version, header.client_id, caller.host, caller.dialled, caller.responses)


async def _respond(header: RequestHeader, request: Any, call: Call) -> Answer:
    response = await handler_of(header.api_key)(request, call)
    if response is None:
        return []
    if call.takes_long:
        return await finish_in_turns(encode_response_in_steps(header, response), call.turns)
    return encode_response(header, response)


async def _respond_in_turns(
    header: RequestHeader, steps: Generator[None, None, tuple[Message, int]], call: Call
) -> Answer:
    request, _ = await finish_in_turns(steps, call.turns)
    return await _respond(header, request, call)


@cache
def handler_of(api_key: int) -> Handler:
    """The `handle` of the file that is named like the API."""
    return cast("Handler", import_module(f"zurau.api.kafka.{APIS[api_key].module}").handle)


def _offer_version_zero(header: RequestHeader) -> Answer:
    """A client newer than us asks what we speak in words we don't know: answer in the oldest form (KIP-511)."""
    from zurau.api.kafka.api_versions import unsupported

    return encode_response(header._replace(api_version=0), unsupported())
