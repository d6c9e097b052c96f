"""The file: one frame after another, each with a mark, a length and a checksum.

The first frame was put in place as a whole, by renaming a file, so it cannot be torn. Frames that were appended can:
what is left of the last one is no frame, and nothing follows it. Anything else that is no frame is damage.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from fastcrc import crc32

#: Begins every frame, so that the frames behind a damaged one are found.
MARK = b"\xa5Zj1"
_HEADER = struct.Struct(">4sII")
_LENGTH = struct.Struct(">I")


class Unreadable(NamedTuple):
    """A stretch of the file that holds no frame."""

    start: int
    end: int
    #: Nothing follows, and something came before: the end of a write that a crash cut short.
    is_torn_end: bool


def encode_frame(payload: bytes) -> bytes:
    return _HEADER.pack(MARK, len(payload), _checksum(payload)) + payload


def read_frames(content: bytes) -> Iterator[bytes | Unreadable]:
    """The payload of each frame in order, and what lies between them if anything does."""
    position = 0
    if not content:
        yield Unreadable(0, 0, is_torn_end=False)
    while position < len(content):
        payload = _payload_at(content, position)
        if payload is not None:
            yield payload
            position += _HEADER.size + len(payload)
            continue
        following = _next_frame(content, position + 1)
        yield Unreadable(position, following, is_torn_end=following == len(content) and position > 0)
        position = following


def _payload_at(content: bytes, position: int) -> bytes | None:
    start = position + _HEADER.size
    if start > len(content):
        return None
    mark, length, checksum = _HEADER.unpack_from(content, position)
    payload = content[start : start + length]
    is_whole = mark == MARK and len(payload) == length and _checksum(payload) == checksum
    return payload if is_whole else None


def _next_frame(content: bytes, position: int) -> int:
    """Where the next whole frame begins, or the end."""
    while (found := content.find(MARK, position)) >= 0:
        if _payload_at(content, found) is not None:
            return found
        position = found + 1
    return len(content)


def _checksum(payload: bytes) -> int:
    """Over the length too: zeroes would be a good frame otherwise."""
    return crc32.iscsi(_LENGTH.pack(len(payload)) + payload)
