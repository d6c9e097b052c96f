"""A frame between brokers.

    size int32 | checksum int32 | kind int8 | version int8 | 0 int16 | head bytes int32 | head | data

The size counts everything behind it. The checksum (CRC-32C, begun with the size) covers everything but the data, which
has checksums of its own. It is looked at as soon as the head has arrived: with a wrong size, what follows would be
waited for in vain.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum, unique

from fastcrc import crc32

from zurau.errors import ProtocolViolation
from zurau.ports import Buffer

FRAME_VERSION = 1

_SIZE_AND_CHECKSUM = struct.Struct(">iI")
#: Kind, version, zero, head bytes: where what the checksum covers begins.
_COVERED = struct.Struct(">BBHI")
#: What is before the head, without the size.
_HEADER = struct.Struct(">IBBHI")
HEADER_BYTES = _HEADER.size
_COVERED_FROM = HEADER_BYTES - _COVERED.size


@unique
class Kind(IntEnum):
    HANDSHAKE = 1
    GOODBYE = 2
    SESSION_REQUEST = 3
    SESSION_RESPONSE = 4
    #: For the controller, and its reply.
    COMMAND = 5
    REPLY = 6
    #: What the sender leads, and a wish that the preferred replica lead.
    LEADERS = 7
    PREFER_LEADER = 8
    #: From and to somebody who is not known yet.
    HELLO = 9
    HELLO_ANSWER = 10
    #: A piece of a snapshot of the metadata.
    SNAPSHOT_ASK = 11
    SNAPSHOT_PIECE = 12
    #: For a partition whose leader has none on its disk.
    ROOM_ASKED = 13
    ROOM_OFFERED = 14
    #: A question about what the other leads, and its answer. Since minor version 1.
    CALL = 15
    CALL_ANSWER = 16


#: Kind, head and data: views of the bytes that came.
Frame = tuple[int, memoryview, memoryview]


def encode_frame(kind: Kind, head: Sequence[Buffer], data: Sequence[Buffer] = ()) -> list[Buffer]:
    """The frame with its size. Pieces of data are handed on as they are."""
    said = b"".join(head)
    size = HEADER_BYTES + len(said) + sum(map(len, data))
    covered = _COVERED.pack(kind, FRAME_VERSION, 0, len(said)) + said
    return [_SIZE_AND_CHECKSUM.pack(size, crc32.iscsi(covered, size)) + covered, *data]


def kind_of(frame: memoryview) -> int:
    """The kind of a frame without its size that is not decoded yet; 0 when it is too short to say."""
    return frame[_COVERED_FROM] if len(frame) > _COVERED_FROM else 0


def check_beginning(size: int, arrived: memoryview, head_bytes_max: int) -> int | None:
    """Look at what has arrived of a frame of this size, its first `HEADER_BYTES` at least. Returns where its head ends
    once all of that is there and is what was sent."""
    checksum, kind, version, zero, head_bytes = _HEADER.unpack_from(arrived)
    if version != FRAME_VERSION or zero or not kind:
        raise ProtocolViolation(
            f"a frame of kind {kind}, version {version}; this broker speaks version {FRAME_VERSION}. "
            "Is something else than a broker connected to the peer port?"
        )
    end: int = HEADER_BYTES + head_bytes
    if end > size or head_bytes > head_bytes_max:
        raise ProtocolViolation(f"a head of {head_bytes} bytes in a frame of {size}; the largest has {head_bytes_max}")
    if len(arrived) < end:
        return None
    if crc32.iscsi(arrived[_COVERED_FROM:end], size) != checksum:
        raise ProtocolViolation("a frame's checksum does not match: it was damaged on its way")
    return end


def decode_frame(frame: memoryview) -> Frame:
    """The parts of a frame without its size."""
    size = len(frame)
    if size < HEADER_BYTES:
        raise ProtocolViolation(f"a frame of {size} bytes; the shortest has {HEADER_BYTES}")
    end = check_beginning(size, frame, size)
    return frame[_COVERED_FROM], frame[HEADER_BYTES:end], frame[end:]
