"""Frames: what goes over a connection. A size as int32, a header, a message.

Which header is not written in the messages themselves:

| header   | has tagged fields                                                                   |
|----------|-------------------------------------------------------------------------------------|
| request  | when the version is flexible; its client id is an old-style string in every version |
| response | when the version is flexible, but never for ApiVersions                             |

ApiVersions is special because it is asked before the client knows what the broker speaks (KIP-511): a version of it
that the broker does not know is answered in the form of version 0, with `UNSUPPORTED_VERSION`.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import NamedTuple

from zurau.errors import ProtocolViolation
from zurau.ports import Buffer
from zurau.settings import MIB
from zurau.wire.kafka.apis import APIS, CLIENT_APIS, Api
from zurau.wire.kafka.codec import decode, decode_in_steps, encode, encode_in_steps
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.frame_reader import FrameReader
from zurau.wire.kafka.schema import Message
from zurau.wire.kafka.varints import skip_tags

__all__ = [
    "FrameReader",
    "RequestHeader",
    "UnsupportedVersion",
    "api_key_of",
    "decode_request",
    "decode_request_in_steps",
    "decode_response",
    "encode_request",
    "encode_response",
    "encode_response_in_steps",
]

PRODUCE = 0
API_VERSIONS = 18

#: Elements in all arrays of one request. Kafka's own advice ends at 4,000 partitions for a broker, so this is generous.
#: An element takes a few bytes to send, a hundred in memory, and some microseconds to answer, while all others wait.
REQUEST_ELEMENTS_MAX = 100_000
#: Of a produce request, which is decoded in one go, so that it cannot be overtaken by the next one. A request of a
#: megabyte, which is what clients send at most by default, has no room for so many batches.
PRODUCE_ELEMENTS_MAX = 20_000
#: An answer without records. A client that names one thing many times would have it repeated as often.
RESPONSE_BYTES_MAX = 100 * MIB

#: API key, version, correlation id, length of the client id.
_REQUEST_HEADER = struct.Struct(">hhih")
_SIZED_REQUEST_HEADER = struct.Struct(">ihhih")
_CORRELATION = struct.Struct(">i")
_SIZED_CORRELATION = struct.Struct(">ii")
_ERROR_CODE = struct.Struct(">h")
_NO_TAGS = b"\0"


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


class UnsupportedVersion(ProtocolViolation):
    """A request of an API or version that is not served. Its header was understood, its body was not looked at."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"version {header.api_version} of API {header.api_key} is not served")
        self.header = header


def api_key_of(frame: memoryview) -> int:
    """Which API a request frame asks for, without decoding it; -1 when it is too short to say."""
    return int.from_bytes(frame[:2], "big", signed=True) if len(frame) > 1 else -1


def decode_request(frame: memoryview) -> tuple[RequestHeader, Message]:
    """The request in a frame without its size. Raises `UnsupportedVersion` when only its header makes sense.

    Bytes behind the request are ignored, as Kafka does: librdkafka 2.15 sends three after some metadata requests.
    """
    header, api, position = _decode_header(frame)
    elements_max = PRODUCE_ELEMENTS_MAX if api.key == PRODUCE else REQUEST_ELEMENTS_MAX
    request, _ = decode(api.request, header.api_version, frame, position, elements_max)
    return header, request


def decode_request_in_steps(frame: memoryview) -> tuple[RequestHeader, Generator[None, None, tuple[Message, int]]]:
    """As `decode_request`, for large frames without records: the header, and the rest in steps."""
    header, api, position = _decode_header(frame)
    return header, decode_in_steps(api.request, header.api_version, frame, position, REQUEST_ELEMENTS_MAX)


def encode_request(header: RequestHeader, request: Message) -> list[Buffer]:
    """The frame with its size, in chunks. For clients."""
    chunks = encode(request, header.api_version)
    client_id = b"" if header.client_id is None else header.client_id.encode()
    tags = _NO_TAGS if CLIENT_APIS[header.api_key].is_flexible(header.api_version) else b""
    size = _REQUEST_HEADER.size + len(client_id) + len(tags) + sum(map(len, chunks))
    client_id_length = -1 if header.client_id is None else len(client_id)
    packed = _SIZED_REQUEST_HEADER.pack(
        size, header.api_key, header.api_version, header.correlation_id, client_id_length
    )
    chunks[0] = b"".join((packed, client_id, tags, chunks[0]))
    return chunks


def encode_response(header: RequestHeader, response: Message) -> list[Buffer]:
    """The frame that answers the request with this header, with its size, in chunks."""
    return _framed(header, encode(response, header.api_version))


def encode_response_in_steps(header: RequestHeader, response: Message) -> Generator[int, None, list[Buffer]]:
    """As `encode_response`, for answers that may take long: yields by how much it has grown. Raises
    `ProtocolViolation` when it gets too large."""
    size_bytes, steps = 0, encode_in_steps(response, header.api_version)
    while True:
        try:
            more_bytes = next(steps)
        except StopIteration as finished:
            return _framed(header, finished.value)
        size_bytes += more_bytes
        if size_bytes > RESPONSE_BYTES_MAX:
            raise ProtocolViolation(
                f"the answer to {APIS[header.api_key].name} has more than {RESPONSE_BYTES_MAX} bytes; ask for less"
            )
        yield more_bytes


def _framed(header: RequestHeader, chunks: list[Buffer]) -> list[Buffer]:
    tags = _NO_TAGS if _response_has_tags(APIS[header.api_key], header.api_version) else b""
    size = _CORRELATION.size + len(tags) + sum(map(len, chunks))
    chunks[0] = b"".join((_SIZED_CORRELATION.pack(size, header.correlation_id), tags, chunks[0]))
    return chunks


def decode_response(header: RequestHeader, frame: memoryview) -> Message:
    """The answer to the request with this header, from a frame without its size. For clients."""
    api, version = CLIENT_APIS[header.api_key], header.api_version
    position = _CORRELATION.size
    try:
        (correlation_id,) = _CORRELATION.unpack_from(frame)
        if correlation_id != header.correlation_id:
            raise ProtocolViolation(f"an answer to request {correlation_id} instead of {header.correlation_id}")
        if _response_has_tags(api, version):
            position = _skip_header_tags(frame, position)
        elif api.key == API_VERSIONS and _ERROR_CODE.unpack_from(frame, position)[0] == ErrorCode.UNSUPPORTED_VERSION:
            version = 0
    except (struct.error, IndexError) as error:
        raise ProtocolViolation("a response's header is malformed") from error
    response, end = decode(api.response, version, frame, position)
    if end != len(frame):
        raise ProtocolViolation(f"{len(frame) - end} bytes follow {api.name}Response v{version}")
    return response


def _decode_header(frame: memoryview) -> tuple[RequestHeader, Api, int]:
    """The header, which API it asks for, and where the request begins."""
    try:
        header, position = _decode_request_header(frame)
        api = APIS.get(header.api_key)
        if api is None or header.api_version not in api.versions:
            raise UnsupportedVersion(header)
        if api.is_flexible(header.api_version):
            position = _skip_header_tags(frame, position)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ProtocolViolation("a request's header is malformed") from error
    return header, api, position


def _decode_request_header(frame: memoryview) -> tuple[RequestHeader, int]:
    api_key, api_version, correlation_id, length = _REQUEST_HEADER.unpack_from(frame)
    position: int = _REQUEST_HEADER.size
    if length == -1:
        return RequestHeader(api_key, api_version, correlation_id, None), position
    end = position + length
    if length < 0 or end > len(frame):
        raise ProtocolViolation("a request's client id runs past the end")
    return RequestHeader(api_key, api_version, correlation_id, str(frame[position:end], "utf-8")), end


def _response_has_tags(api: Api, version: int) -> bool:
    return api.key != API_VERSIONS and api.is_flexible(version)


def _skip_header_tags(frame: memoryview, position: int) -> int:
    count = frame[position]
    return position + 1 if count == 0 else skip_tags(frame, position + 1, len(frame), count)
