"""From a frame to the bytes that answer it.

Handlers and their messages are imported when they are first asked for, so that a broker starts quickly and holds only
what its clients use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from importlib import import_module
from typing import Any, cast

from zurau.api.kafka.call import Call, Caller
from zurau.broker.broker import Broker
from zurau.pending import Pending, done, start
from zurau.ports import Buffer
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.frames import RequestHeader, UnsupportedVersion, decode_request, encode_response

API_VERSIONS = 18
PRODUCE = 0

Handler = Callable[[Any, Call], Awaitable[Any]]
#: The bytes to send, in pieces; empty when the client wants no answer.
Answer = list[Buffer]


def answer(frame: memoryview, caller: Caller, broker: Broker) -> tuple[RequestHeader, Pending[Answer]]:
    """Start to answer a request. Raises `ProtocolViolation` for one that cannot be understood."""
    try:
        header, request = decode_request(frame)
    except UnsupportedVersion as unsupported:
        if unsupported.header.api_key != API_VERSIONS:
            raise
        return unsupported.header, done(_offer_version_zero(unsupported.header))
    call = Call(broker, header.api_version, header.client_id, caller.host, caller.dialled, caller.responses)
    return header, start(_respond(header, request, call), caller.resume)


async def _respond(header: RequestHeader, request: Any, call: Call) -> Answer:
    response = await handler_of(header.api_key)(request, call)
    return [] if response is None else encode_response(header, response)


@cache
def handler_of(api_key: int) -> Handler:
    """The `handle` of the file that is named like the API."""
    return cast("Handler", import_module(f"zurau.api.kafka.{APIS[api_key].module}").handle)


def _offer_version_zero(header: RequestHeader) -> Answer:
    """A client newer than us asks what we speak in words we don't know: answer in the oldest form (KIP-511)."""
    from zurau.api.kafka.api_versions import unsupported

    return encode_response(header._replace(api_version=0), unsupported())
