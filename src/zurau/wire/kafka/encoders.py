"""Writes the encoder of one message version as flat Python.

What a generated encoder looks like (Heartbeat response, version 4):

    def encode(message):
        chunks = []
        parts = []
        put = parts.append
        put(pack_i_h_x(message.throttle_time_ms, message.error_code))
        chunks.append(join(parts))
        return chunks

Neighbouring fields of fixed width, and the length after them, are written by one `pack`; an `x` is the zero byte that
says "no tagged fields". Records are not copied: they become a chunk of their own between two joined ones. A value
that does not fit its field is our own mistake and raises whatever `struct` raises.

An encoder in steps is the same code as a generator, which makes a chunk of what it has now and then and yields its
size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from typing import Any

from zurau.ports import Buffer
from zurau.settings import KIB
from zurau.wire.kafka import varints
from zurau.wire.kafka.layout import ArrayOf, Field, Fixed, Kind, Part, Sized, default_of, layout
from zurau.wire.kafka.schema import Message, Struct
from zurau.wire.kafka.source import Source

Encoder = Callable[[Any], list[Buffer]]
SteppingEncoder = Callable[[Any], Generator[int, None, list[Buffer]]]

#: Parts of a chunk in an encoder in steps: about a millisecond, and enough to be sent without being copied again.
STEP_PARTS = 4096
#: A part from this size on ends a chunk.
LARGE_BYTES = 4 * KIB


def make_encoder(cls: type[Message], version: int) -> Encoder:
    writer = _EncoderWriter(f"encoder of {cls.__name__} v{version}")
    return writer.write_message(layout(cls, version))


def make_stepping_encoder(cls: type[Message], version: int) -> SteppingEncoder:
    writer = _EncoderWriter(f"stepping encoder of {cls.__name__} v{version}", in_steps=True)
    return writer.write_message(layout(cls, version))


class _EncoderWriter:
    def __init__(self, title: str, *, in_steps: bool = False) -> None:
        self._title = title
        self._in_steps = in_steps
        self._source = Source()
        self._source.names |= {
            "ONE_BYTE": varints.ONE_BYTE,
            "encode_uvarint": varints.encode_uvarint,
            "join": b"".join,
            "pack_array": struct.pack,
            # Asked for where it is used: an encoder is made once, and its module's number may be another later.
            "step_parts": lambda: STEP_PARTS,
            "large_bytes": lambda: LARGE_BYTES,
        }
        #: Fixed-width values not yet written: (letter, expression). One `pack` writes them all.
        self._behind: list[tuple[str, str]] = []

    def write_message(self, part: Part) -> Callable[..., Any]:
        with self._source.block("def encode(message):"):
            self._source.line("chunks = []")
            self._source.line("parts = []")
            self._source.line("put = parts.append")
            self._part(part, "message")
            self._write_behind()
            self._source.line("chunks.append(join(parts))")
            if self._in_steps:
                self._source.line("yield len(chunks[-1])")
            self._source.line("return chunks")
        return self._source.compile(self._title, "encode")

    def write_value(self, field: Field) -> Callable[[Any], bytes]:
        """The encoder of a tagged field's value alone, whose size has to be known before it is written."""
        with self._source.block("def encode(value):"):
            self._source.line("parts = []")
            self._source.line("put = parts.append")
            self._value(field.kind, "value", field.nullable, flexible=True)
            self._write_behind()
            self._source.line("return join(parts)")
        return self._source.compile(self._title, "encode")

    def _write_behind(self) -> None:
        """Emit the write of every pending fixed-width value."""
        if self._behind:
            self._source.line(f"put({self._packed(self._behind)})")
            self._behind = []

    def _packed(self, values: list[tuple[str, str]]) -> str:
        letters = [letter for letter, _ in values]
        if letters == ["x"] * len(letters):
            return repr(bytes(len(letters)))
        if letters == ["B"]:
            return f"ONE_BYTE[{values[0][1]}]"
        pack = self._source.codec_of(letters, "pack")
        return f"{pack}({', '.join(expression for letter, expression in values if letter != 'x')})"

    def _write_length(self, size: str, letter: str, flexible: bool) -> None:
        """Emit a length with the values pending before it; a small varint is one byte of the same `pack`."""
        if not flexible:
            self._behind.append((letter, size))
            self._write_behind()
            return
        if self._behind:
            small = self._packed([*self._behind, ("B", size)])
            large = f"{self._packed(self._behind)} + encode_uvarint({size})"
        else:
            small, large = f"ONE_BYTE[{size}]", f"encode_uvarint({size})"
        self._behind = []
        self._source.line(f"put({small} if {size} < 128 else {large})")

    def _part(self, part: Part, owner: str) -> None:
        for field in part.fields:
            self._value(field.kind, f"{owner}.{field.name}", field.nullable, part.flexible)
        if part.tags:
            self._tags(part, owner)
        elif part.flexible:
            self._behind.append(("x", ""))

    def _value(self, kind: Kind, expression: str, nullable: bool, flexible: bool) -> None:
        match kind:
            case Fixed():
                self._behind.append((kind.code, expression))
            case Sized("string"):
                self._string(expression, nullable, flexible)
            case Sized():
                self._bytes(kind, expression, nullable, flexible)
            case ArrayOf():
                self._array(kind.element, expression, nullable, flexible)
            case Part() if nullable:
                self._nullable_part(kind, expression)
            case Part():
                self._part(kind, self._bind("part", expression))

    def _bind(self, stem: str, expression: str) -> str:
        variable = self._source.fresh(stem)
        self._source.line(f"{variable} = {expression}")
        return variable

    def _size(self, value: str, raw: str, nullable: bool, flexible: bool) -> str:
        """Emit the computation of a length as the wire has it: null is -1, or everything is one more."""
        size = f"len({raw}) + 1" if flexible else f"len({raw})"
        null = "0" if flexible else "-1"
        return self._bind("size", f"{null} if {value} is None else {size}" if nullable else size)

    def _string(self, expression: str, nullable: bool, flexible: bool) -> None:
        if nullable:
            value = self._bind("value", expression)
            raw = self._bind("raw", f"b'' if {value} is None else {value}.encode()")
        else:
            value = raw = self._bind("raw", f"{expression}.encode()")
        size = self._size(value, raw, nullable, flexible)
        if flexible:  # whoever reads it refuses what is longer: it must not be written down
            with self._source.block(f"if {size} > {varints.STRING_BYTES_MAX + 1}:"):
                self._source.line(f"raise ValueError(f'a string of {{{size} - 1}} bytes is too long to be written')")
        self._write_length(size, "h", flexible)
        self._source.line(f"put({raw})")
        self._cut_if_large(size)

    def _bytes(self, kind: Sized, expression: str, nullable: bool, flexible: bool) -> None:
        raw = self._bind("raw", expression)
        size = self._size(raw, raw, nullable, flexible)
        self._write_length(size, "i", flexible)
        with self._source.block(f"if {raw}:"):
            if kind.name == "records":
                self._source.line("chunks.append(join(parts))")
                self._source.line("parts.clear()")
                self._source.line(f"chunks.append({raw})")
            else:
                self._source.line(f"put({raw})")
        if kind.name != "records":
            self._cut_if_large(size)

    def _array(self, element: Kind, expression: str, nullable: bool, flexible: bool) -> None:
        items = self._bind("items", expression)
        size = self._size(items, items, nullable, flexible)
        self._write_length(size, "i", flexible)
        if isinstance(element, Fixed) and len(element.code) == 1:
            with self._source.block(f"if {items}:"):
                self._source.line(f"put(pack_array(f'>{{len({items})}}{element.code}', *{items}))")
            return
        item = self._source.fresh("item")
        with self._source.block(f"for {item} in {items}{' or ()' if nullable else ''}:"):
            if isinstance(element, Part):
                self._part(element, item)
            else:
                self._value(element, item, nullable=False, flexible=flexible)
            self._write_behind()
            if self._in_steps:
                self._end_step()

    def _end_step(self) -> None:
        with self._source.block("if len(parts) >= step_parts():"):
            self._cut()

    def _cut_if_large(self, size: str) -> None:
        """A few of these can be more than thousands of other parts."""
        if self._in_steps:
            with self._source.block(f"if {size} > large_bytes():"):
                self._cut()

    def _cut(self) -> None:
        self._source.line("chunks.append(join(parts))")
        self._source.line("parts.clear()")
        self._source.line("yield len(chunks[-1])")

    def _nullable_part(self, part: Part, expression: str) -> None:
        """KIP-893: one byte before the struct, 1 when it is there and -1 when it is null."""
        value = self._bind("value", expression)
        self._write_behind()
        with self._source.block(f"if {value} is None:"):
            self._source.line("put(b'\\xff')")
        with self._source.block("else:"):
            self._behind.append(("b", "1"))
            self._part(part, value)
            self._write_behind()

    def _tags(self, part: Part, owner: str) -> None:
        """Emit the tagged fields that do not have their default, after how many there are."""
        count, tagged = self._source.fresh("count"), self._source.fresh("tagged")
        self._source.line(f"{count}, {tagged} = 0, b''")
        for field in part.tags:
            encode = self._source.fresh(f"encode_{field.name}")
            title = f"{self._title}, tagged field {part.cls.__name__}.{field.name}"
            self._source.names[encode] = _EncoderWriter(title).write_value(field)
            value = self._bind("value", f"{owner}.{field.name}")
            with self._source.block(f"if {self._differs(value, part.cls, field)}:"):
                self._source.line(f"{count} += 1")
                raw = self._bind("raw", f"{encode}({value})")
                number = varints.encode_uvarint(field.tag or 0)
                self._source.line(f"{tagged} += {number!r} + encode_uvarint(len({raw})) + {raw}")
        self._behind.append(("B", count))
        self._write_behind()
        with self._source.block(f"if {count}:"):
            self._source.line(f"put({tagged})")

    def _differs(self, value: str, cls: type[Struct], field: Field) -> str:
        default = default_of(cls, field.name)
        if default is None:
            return f"{value} is not None"
        if default == []:
            return f"{value} or {value} is None" if field.nullable else value
        name = f"default_{cls.__name__}_{field.name}"
        self._source.names[name] = default
        return f"{value} is not {name} and {value} != {name}"
