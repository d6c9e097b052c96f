"""Takes the fields of a frame's head one after the other, and never more than there is.

Many equal things are *rows* of one layout: they are checked once and taken in one go. A text has its length before it.
At the end there may be tagged fields (tag int16, length int32, bytes), in rising order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from zurau.errors import ProtocolViolation

_LENGTH = struct.Struct(">H")
_TAG = struct.Struct(">HI")


class Fields:
    __slots__ = ("_data", "_position")

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        """The values of one layout."""
        return layout.unpack_from(self._data, self._pass(layout.size))

    def rows(self, layout: struct.Struct, count: int) -> Iterator[tuple[Any, ...]]:
        """The values of a layout, so many times."""
        return layout.iter_unpack(self._next(count * layout.size))

    def text(self) -> str:
        return self.text_of(*self.take(_LENGTH))

    def text_of(self, length: int) -> str:
        """A text whose length stood elsewhere."""
        try:
            return str(self._next(length), "utf-8")
        except UnicodeDecodeError as error:
            raise ProtocolViolation(f"a text that is not UTF-8: {error}") from error

    def tagged(self) -> dict[int, memoryview]:
        """All tagged fields. Nothing is behind them."""
        found: dict[int, memoryview] = {}
        last = -1
        while self._position < len(self._data):
            tag, length = self.take(_TAG)
            if tag <= last:
                raise ProtocolViolation(f"the tagged field {tag} behind the tagged field {last}")
            found[tag] = self._next(length)
            last = tag
        return found

    def _next(self, length: int) -> memoryview:
        begin = self._pass(length)
        return self._data[begin : begin + length]

    def _pass(self, length: int) -> int:
        """Where the next field of this length begins, which is there."""
        begin = self._position
        self._position = begin + length
        if self._position > len(self._data):
            raise ProtocolViolation(f"{length} bytes expected where {len(self._data) - begin} are left of a frame")
        return begin


def encode_text(text: str) -> bytes:
    encoded = text.encode()
    return _LENGTH.pack(len(encoded)) + encoded


def encode_tagged(fields: Mapping[int, bytes]) -> bytes:
    """What `Fields.tagged` takes."""
    return b"".join(_TAG.pack(tag, len(field)) + field for tag, field in sorted(fields.items()))
