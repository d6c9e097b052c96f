"""Two offsets of a log that its segments do not tell: where it starts after records were deleted from the front, and
up to where it has been compacted. A small text file that is replaced as a whole."""

from __future__ import annotations

from typing import NamedTuple

from zurau.errors import CorruptData
from zurau.ids import Offset

FILE_NAME = "log-checkpoint"
_VERSION = "0"
_START = "start-offset"
_COMPACTED = "compacted-offset"


class Checkpoint(NamedTuple):
    start_offset: Offset = 0
    compacted_offset: Offset = 0

    def content(self) -> bytes:
        return f"{_VERSION}\n{_START} {self.start_offset}\n{_COMPACTED} {self.compacted_offset}\n".encode()


def parse_checkpoint(content: bytes) -> Checkpoint:
    """Raises `CorruptData`: guessing here would bring deleted records back."""
    try:
        version, *lines = content.decode().splitlines()
        offsets = {name: int(number) for name, number in (line.split() for line in lines)}
        if version == _VERSION:
            return Checkpoint(offsets[_START], offsets[_COMPACTED])
    except (ValueError, KeyError):
        pass
    raise CorruptData(f"{FILE_NAME} does not say two offsets; put them back or remove it to serve all that is stored")
