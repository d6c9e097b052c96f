"""Writes the decoder of one message version as flat Python.

What a generated decoder looks like (Heartbeat, version 4):

    def decode(buffer, at, end, left):
        size_1 = buffer[at]
        at += 1
        if size_1 > 127:
            size_1, at = continue_string_length(buffer, at, size_1)
        stop = at + size_1 - 1
        if not size_1 or stop > end:
            raise ProtocolViolation('HeartbeatRequest v4: group_id runs past the end or is null')
        group_id_2 = buffer[at:stop].tobytes().decode()
        at = stop
        generation_id_3, size_4 = unpack_from_i_B(buffer, at)
        at += 5
        ...
        return HeartbeatRequest(group_id=group_id_2, generation_id=generation_id_3, ...), at

Neighbouring fields of fixed width, and the first byte of the length after them, are read by one `unpack_from`. That
call and indexing raise at the end of the buffer by themselves; slices do not, so every `stop` is checked first. A
count is checked against the bytes that are left before anything is made for it, and against `left`: how many more
elements the whole message may hold, for three bytes on the wire can become a hundred in memory.

A decoder in steps is the same code as a generator, which yields after each element of an array.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from typing import Any

from zurau.errors import ProtocolViolation
from zurau.wire.kafka import varints
from zurau.wire.kafka.layout import ArrayOf, Field, Fixed, Kind, Part, Sized, default_of, layout, narrowest
from zurau.wire.kafka.schema import Message, Struct
from zurau.wire.kafka.source import Source

Decoder = Callable[[memoryview, int, int, int], tuple[Any, int]]
SteppingDecoder = Callable[[memoryview, int, int, int], Generator[None, None, tuple[Any, int]]]

_TAKE = {
    "string": "buffer[at:stop].tobytes().decode()",
    "bytes": "bytes(buffer[at:stop])",
    "records": "buffer[at:stop]",
}


def make_decoder(cls: type[Message], version: int) -> Decoder:
    writer = _DecoderWriter(f"{cls.__name__} v{version}")
    return writer.write(layout(cls, version))


def make_stepping_decoder(cls: type[Message], version: int) -> SteppingDecoder:
    writer = _DecoderWriter(f"{cls.__name__} v{version}", in_steps=True)
    return writer.write(layout(cls, version))


class _DecoderWriter:
    def __init__(self, title: str, *, in_steps: bool = False) -> None:
        self._title = title
        self._in_steps = in_steps
        self._source = Source()
        self._source.names |= {
            "ProtocolViolation": ProtocolViolation,
            "continue_uvarint": varints.continue_uvarint,
            "continue_string_length": varints.continue_string_length,
            "check_tag_count": varints.check_tag_count,
            "decode_tag": varints.decode_tag,
            "skip_tags": varints.skip_tags,
            "unpack_array": struct.unpack_from,
        }
        #: Fixed-width values not yet read: (letter, variable). One `unpack_from` reads them all.
        self._ahead: list[tuple[str, str]] = []

    def write(self, part: Part) -> Callable[..., Any]:
        with self._source.block("def decode(buffer, at, end, left):"):
            if self._in_steps:
                self._source.line("yield  # also a message without arrays is a generator")
            made = self._part(part, path="")
            self._read_ahead()
            self._source.line(f"return {made}, at")
        return self._source.compile(f"decoder of {self._title}", "decode")

    def _read_ahead(self) -> None:
        """Emit the read of every pending fixed-width value."""
        if not self._ahead:
            return
        letters = [letter for letter, _ in self._ahead]
        variables = [variable for _, variable in self._ahead]
        self._ahead = []
        if letters == ["B"]:
            self._source.line(f"{variables[0]} = buffer[at]")
        else:
            targets = ", ".join(variables) + ("," if len(variables) == 1 else "")
            self._source.line(f"{targets} = {self._source.codec_of(letters, 'unpack_from')}(buffer, at)")
        self._source.line(f"at += {struct.calcsize('>' + ''.join(letters))}")

    def _later(self, letter: str, stem: str) -> str:
        variable = self._source.fresh(stem)
        self._ahead.append((letter, variable))
        return variable

    def _refuse(self, path: str, reason: str) -> None:
        self._source.line(f"raise ProtocolViolation({f'{self._title}: {path} {reason}'!r})")

    def _part(self, part: Part, path: str) -> str:
        """Emit the reads of a struct; return the expression that makes it, valid after the next read-ahead."""
        self._source.names[part.cls.__name__] = part.cls
        arguments = [f"{field.name}={self._field(field, part.flexible, path)}" for field in part.fields]
        if part.flexible:
            arguments += self._tags(part, path)
        return f"{part.cls.__name__}({', '.join(arguments)})"

    def _field(self, field: Field, flexible: bool, path: str) -> str:
        """Emit the read of a field; return the expression for its value."""
        return self._value(field.kind, field.name, field.nullable, flexible, f"{path}.{field.name}".lstrip("."))

    def _value(self, kind: Kind, stem: str, nullable: bool, flexible: bool, path: str) -> str:
        match kind:
            case Fixed():
                return self._later(kind.code, stem)
            case Sized():
                return self._sized(kind, stem, nullable, flexible, path)
            case ArrayOf():
                return self._array(kind, stem, nullable, flexible, path)
            case Part() if nullable:
                return self._nullable_part(kind, stem, path)
            case Part():
                return self._part(kind, path)

    def _length(self, kind: Sized | ArrayOf, flexible: bool) -> str:
        """Emit the read of a length or count; return its variable (one too many in flexible versions)."""
        is_string = kind == Sized("string")
        if not flexible:
            size = self._later("h" if is_string else "i", "size")
            self._read_ahead()
            return size
        size = self._later("B", "size")
        self._read_ahead()
        with self._source.block(f"if {size} > 127:"):
            more = "continue_string_length" if is_string else "continue_uvarint"
            self._source.line(f"{size}, at = {more}(buffer, at, {size})")
        return size

    def _unless_null(self, size: str, flexible: bool, variable: str, path: str) -> str:
        """Emit the null case of a nullable value; return the opening of the block for the other case."""
        if flexible:
            with self._source.block(f"if {size} == 0:"):
                self._source.line(f"{variable} = None")
            return "else:"
        with self._source.block(f"if {size} < 0:"):
            with self._source.block(f"if {size} != -1:"):
                self._refuse(path, "has a negative length")
            self._source.line(f"{variable} = None")
        return "else:"

    def _sized(self, kind: Sized, stem: str, nullable: bool, flexible: bool, path: str) -> str:
        size = self._length(kind, flexible)
        variable = self._source.fresh(stem)
        if nullable:
            with self._source.block(self._unless_null(size, flexible, variable, path)):
                self._take(kind, size, variable, flexible, path, check_sign=False)
        else:
            self._take(kind, size, variable, flexible, path, check_sign=True)
        return variable

    def _take(self, kind: Sized, size: str, variable: str, flexible: bool, path: str, *, check_sign: bool) -> None:
        self._source.line(f"stop = at + {size}{' - 1' if flexible else ''}")
        bad_sign = (f"not {size} or " if flexible else f"{size} < 0 or ") if check_sign else ""
        with self._source.block(f"if {bad_sign}stop > end:"):
            self._refuse(path, "runs past the end or is null" if check_sign else "runs past the end")
        self._source.line(f"{variable} = {_TAKE[kind.name]}")
        self._source.line("at = stop")

    def _array(self, kind: ArrayOf, stem: str, nullable: bool, flexible: bool, path: str) -> str:
        count = self._length(kind, flexible)
        variable = self._source.fresh(stem)
        if nullable:
            with self._source.block(self._unless_null(count, flexible, variable, path)):
                self._bound(kind.element, count, flexible, path, check_sign=False)
                self._elements(kind.element, count, variable, flexible, path)
        else:
            self._bound(kind.element, count, flexible, path, check_sign=True)
            self._elements(kind.element, count, variable, flexible, path)
        return variable

    def _bound(self, element: Kind, count: str, flexible: bool, path: str, *, check_sign: bool) -> None:
        if flexible:
            self._source.line(f"{count} -= 1")
        width = narrowest(element, flexible=flexible)
        assert width > 0, f"{path} has elements of no width, so its count cannot be bounded"
        bad_sign = f"{count} < 0 or " if check_sign else ""
        with self._source.block(f"if {bad_sign}{count} * {width} > end - at:"):
            self._refuse(
                path, "has more elements than bytes or is null" if check_sign else "has more elements than bytes"
            )
        self._charge(count, path)

    def _charge(self, count: str, path: str) -> None:
        """Emit the check that the message may hold so many more elements."""
        self._source.line(f"left -= {count}")
        with self._source.block("if left < 0:"):
            self._refuse(path, "has more elements than one message may hold")

    def _elements(self, element: Kind, count: str, variable: str, flexible: bool, path: str) -> None:
        if isinstance(element, Fixed) and len(element.code) == 1:
            self._source.line(f"{variable} = list(unpack_array(f'>{{{count}}}{element.code}', buffer, at))")
            self._source.line(f"at += {count} * {element.width}")
            return
        self._source.line(f"{variable} = []")
        with self._source.block(f"for _ in range({count}):"):
            made = self._value(element, "element", False, flexible, path)
            self._read_ahead()
            self._source.line(f"{variable}.append({made})")
            if self._in_steps:
                self._source.line("yield")

    def _nullable_part(self, part: Part, stem: str, path: str) -> str:
        """KIP-893: one byte before the struct, 1 when it is there and -1 when it is null."""
        present = self._later("b", "present")
        self._read_ahead()
        variable = self._source.fresh(stem)
        with self._source.block(f"if {present} == 1:"):
            made = self._part(part, path)
            self._read_ahead()
            self._source.line(f"{variable} = {made}")
        with self._source.block(f"elif {present} == -1:"):
            self._source.line(f"{variable} = None")
        with self._source.block("else:"):
            self._refuse(path, "is neither present nor null")
        return variable

    def _tags(self, part: Part, path: str) -> list[str]:
        """Emit the tagged fields at the end of a struct; return the arguments for those that are known."""
        count = self._later("B", "tags")
        self._read_ahead()
        if not part.tags:
            with self._source.block(f"if {count}:"):
                self._charge(count, path)
                self._source.line(f"at = skip_tags(buffer, at, end, {count})")
            return []
        variables = {field.name: self._source.fresh(field.name) for field in part.tags}
        for field in part.tags:
            self._source.line(f"{variables[field.name]} = {self._default(part.cls, field)}")
        with self._source.block(f"if {count}:"):
            self._charge(count, path)
            self._source.line(f"check_tag_count({count})")
            with self._source.block(f"for _ in range({count}):"):
                self._known_or_skipped(part, variables, path)
        return [f"{name}={variable}" for name, variable in variables.items()]

    def _known_or_skipped(self, part: Part, variables: dict[str, str], path: str) -> None:
        number, limit = self._source.fresh("tag"), self._source.fresh("limit")
        self._source.line(f"{number}, at, {limit} = decode_tag(buffer, at, end)")
        branch = "if"
        for field in part.tags:
            with self._source.block(f"{branch} {number} == {field.tag}:"):
                made = self._field(field, part.flexible, path)
                self._read_ahead()
                self._source.line(f"{variables[field.name]} = {made}")
                with self._source.block(f"if at != {limit}:"):
                    self._refuse(f"{path}.{field.name}".lstrip("."), "does not fill its tagged field")
            branch = "elif"
        with self._source.block("else:"):
            self._source.line(f"at = {limit}")

    def _default(self, cls: type[Struct], field: Field) -> str:
        default = default_of(cls, field.name)
        if default == []:
            return "[]"
        name = f"default_{cls.__name__}_{field.name}"
        self._source.names[name] = default
        return name
