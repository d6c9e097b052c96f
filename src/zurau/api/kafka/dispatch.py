"""From a frame to the bytes that answer it."""

from __future__ import annotations

from collections.abc import Generator

from zurau.api.client import Client
from zurau.api.kafka.call import Call
from zurau.api.kafka.handlers import HANDLERS
from zurau.api.response_memory import ResponseShare
from zurau.api.turns import finish_in_turns
from zurau.broker.authorization import authorize
from zurau.broker.broker import Broker
from zurau.broker.last_seen import Kind
from zurau.errors import ProtocolViolation
from zurau.pending import Pending, done, start
from zurau.ports import Buffer
from zurau.settings import KIB, MIB
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
PRODUCE, FETCH = 0, 1
#: From this size on, requests without records are decoded, and their answers encoded, in turns. A smaller one may
#: list a thousand things, which takes about a millisecond.
LARGE_BYTES = 4 * KIB
#: What an answer without records may take though others that are large are not taken by their clients.
LARGE_ANSWER_BYTES = MIB
#: What a client shows itself to be by asking this.
_SEEN_AS = {PRODUCE: Kind.PRODUCER, FETCH: Kind.CONSUMER}

#: The bytes to send, in pieces; empty when the client wants no answer.
Answer = list[Buffer]


def answer(frame: memoryview, client: Client, broker: Broker) -> tuple[RequestHeader, Pending[Answer]]:
    """Start to answer a request. Raises `ProtocolViolation` for one that cannot be understood."""
    try:
        if len(frame) > LARGE_BYTES and api_key_of(frame) != PRODUCE:
            header, steps = decode_request_in_steps(frame)
            return header, start(_respond_in_turns(header, steps, _call(header, client, broker)), client.resume)
        header, request = decode_request(frame)
    except UnsupportedVersion as unsupported:
        if unsupported.header.api_key != API_VERSIONS:
            raise
        return unsupported.header, done(_offer_version_zero(unsupported.header))
    return header, start(_respond(header, request, _call(header, client, broker)), client.resume)


def _call(header: RequestHeader, client: Client, broker: Broker) -> Call:
    return Call(broker, header.api_version, header.client_id, client)


async def _respond(header: RequestHeader, request: Message, call: Call) -> Answer:
    handler = HANDLERS[header.api_key]
    # Whether the caller may ask this at all. Whether it may of each thing that it names, only the handler sees.
    for permission, resource in handler.checks:
        authorize(call.client.caller, permission, resource)
    seen_as = _SEEN_AS.get(header.api_key)
    if seen_as is not None:
        call.broker.last_seen.heard(seen_as, call.client_id)
    response = await handler.handle(request, call)
    if response is None:
        return []
    if not call.takes_long:
        return encode_response(header, response)
    steps = encode_response_in_steps(header, response)
    if call.responses is None or header.api_key in _SEEN_AS:  # what these read is counted as they read it
        return await finish_in_turns(steps, call.turns)
    return await _encode_long(steps, call.responses, call)


async def _encode_long(steps: Generator[int, None, Answer], responses: ResponseShare, call: Call) -> Answer:
    """With its memory counted as it grows; one that gets large waits for its turn and for room."""
    memory, size, has_turn = responses.memory, 0, False
    try:
        while True:
            if call.is_large or size > LARGE_ANSWER_BYTES:
                if not has_turn:
                    await memory.turn_to_make()
                    has_turn = True
                if not await memory.may_grow(call.broker.clock):
                    raise ProtocolViolation("there is no memory for its answer, and others do not take theirs")
            try:
                more_bytes = next(steps)
            except StopIteration as finished:
                answer: Answer = finished.value
                return answer
            responses.take(more_bytes)
            size += more_bytes
            if call.turns.is_over():
                await call.turns.next()
    finally:
        if has_turn:
            memory.made()


async def _respond_in_turns(
    header: RequestHeader, steps: Generator[None, None, tuple[Message, int]], call: Call
) -> Answer:
    request, _ = await finish_in_turns(steps, call.turns)
    return await _respond(header, request, call)


def _offer_version_zero(header: RequestHeader) -> Answer:
    """A client newer than us asks what we speak in words we don't know: answer in the oldest form (KIP-511)."""
    from zurau.api.kafka.api_versions import unsupported

    return encode_response(header._replace(api_version=0), unsupported())
