"""Bytes to messages and back: one compiled decoder and encoder for each message and version, made on first use.

Decoding trusts nothing. Whatever the bytes are, it returns a message or raises `ProtocolViolation`, and it never
makes more than the bytes it was given can account for. Encoding trusts its caller.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import TypeVar

from zurau.errors import ProtocolViolation
from zurau.ports import Buffer
from zurau.wire.kafka.decoders import Decoder, SteppingDecoder, make_decoder, make_stepping_decoder
from zurau.wire.kafka.encoders import Encoder, SteppingEncoder, make_encoder, make_stepping_encoder
from zurau.wire.kafka.schema import Message

M = TypeVar("M", bound=Message)

_decoders: dict[tuple[type[Message], int], Decoder] = {}
_encoders: dict[tuple[type[Message], int], Encoder] = {}
_stepping_decoders: dict[tuple[type[Message], int], SteppingDecoder] = {}
_stepping_encoders: dict[tuple[type[Message], int], SteppingEncoder] = {}

_VERSION = struct.Struct(">h")

#: For messages of a broker that is trusted, and for our own records.
ANY_NUMBER = 1 << 62


def decode(
    cls: type[M], version: int, buffer: Buffer, position: int = 0, elements_max: int = ANY_NUMBER
) -> tuple[M, int]:
    """The message at `position`, and where it ends. Its records are views into the buffer.

    `elements_max` bounds the elements of all its arrays together.
    """
    decoder = _decoders.get((cls, version))
    if decoder is None:
        decoder = _decoders[cls, version] = make_decoder(cls, version)
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    try:
        return decoder(view, position, len(view), elements_max)
    except (struct.error, IndexError) as error:
        raise _cut_short(cls, version) from error
    except UnicodeDecodeError as error:
        raise _not_utf8(cls, version) from error


def decode_in_steps(
    cls: type[M], version: int, buffer: memoryview, position: int, elements_max: int
) -> Generator[None, None, tuple[M, int]]:
    """As `decode`, for messages that may take long: yields between the elements of arrays."""
    decoder = _stepping_decoders.get((cls, version))
    if decoder is None:
        decoder = _stepping_decoders[cls, version] = make_stepping_decoder(cls, version)
    try:
        return (yield from decoder(buffer, position, len(buffer), elements_max))
    except (struct.error, IndexError) as error:
        raise _cut_short(cls, version) from error
    except UnicodeDecodeError as error:
        raise _not_utf8(cls, version) from error


def encode(message: Message, version: int) -> list[Buffer]:
    """The message as chunks to be sent one after the other. Its records are among them as they are, not copied."""
    cls = type(message)
    encoder = _encoders.get((cls, version))
    if encoder is None:
        encoder = _encoders[cls, version] = make_encoder(cls, version)
    return encoder(message)


def encode_in_steps(message: Message, version: int) -> Generator[int, None, list[Buffer]]:
    """As `encode`, for messages that may take long: yields the size of each chunk that it has made."""
    cls = type(message)
    encoder = _stepping_encoders.get((cls, version))
    if encoder is None:
        encoder = _stepping_encoders[cls, version] = make_stepping_encoder(cls, version)
    return encoder(message)


def encode_versioned(message: Message, version: int) -> bytes:
    """A record of a log: the version as an int16, then the message."""
    return b"".join((_VERSION.pack(version), *encode(message, version)))


def decode_versioned(cls: type[M], buffer: Buffer) -> M:
    """The inverse of `encode_versioned`; the whole buffer must be the message."""
    version = peek_version(buffer)
    if version not in cls.versions:
        raise ProtocolViolation(f"{cls.__name__} has no version {version}")
    message, end = decode(cls, version, buffer, _VERSION.size)
    if end != len(buffer):
        raise ProtocolViolation(f"{len(buffer) - end} bytes follow {cls.__name__} v{version}")
    return message


def peek_version(buffer: Buffer) -> int:
    """The version in front of a log's record; for keys it tells which kind of record this is."""
    if len(buffer) < _VERSION.size:
        raise ProtocolViolation("a record is too short to hold its version")
    version: int = _VERSION.unpack_from(buffer)[0]
    return version


def _cut_short(cls: type[Message], version: int) -> ProtocolViolation:
    return ProtocolViolation(f"{cls.__name__} v{version} is cut short")


def _not_utf8(cls: type[Message], version: int) -> ProtocolViolation:
    return ProtocolViolation(f"{cls.__name__} v{version} has a string that is not UTF-8")
