"""What one version of a message looks like on the wire, worked out from its declaration.

    declaration (schema.py)  --layout(cls, version)-->  Part: fields in wire order, then tagged fields
                                                        each with a kind: Fixed, Sized, ArrayOf or Part

`decoders.py` and `encoders.py` turn a Part into code.
"""

from __future__ import annotations

import struct
import types
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from zurau.wire.kafka.schema import Message, NullableSince, Primitive, Struct, Tag, Versions


class Fixed(msgspec.Struct, frozen=True):
    """A leaf whose width never varies; `code` is its `struct` letter."""

    code: str

    @property
    def width(self) -> int:
        return struct.calcsize(f">{self.code}")


class Sized(msgspec.Struct, frozen=True):
    """A leaf that carries its own length."""

    name: Literal["string", "bytes", "records"]


class ArrayOf(msgspec.Struct, frozen=True):
    element: Kind


class Field(msgspec.Struct, frozen=True):
    name: str
    kind: Kind
    nullable: bool
    tag: int | None = None


class Part(msgspec.Struct, frozen=True):
    """A struct as one version has it. A field that the version lacks is not here."""

    cls: type[Struct]
    flexible: bool
    fields: tuple[Field, ...]
    #: By number, ascending: the order in which they are written.
    tags: tuple[Field, ...]


Kind = Fixed | Sized | ArrayOf | Part


def layout(cls: type[Message], version: int) -> Part:
    flexible = cls.flexible_since is not None and version >= cls.flexible_since
    return _part(cls, version, flexible)


def default_of(cls: type[Struct], name: str) -> Any:
    """The value that a field has when nothing says otherwise."""
    # Not `msgspec.structs.fields`: that evaluates all annotations, which takes as long as making the codec.
    names, defaults = cls.__struct_fields__, cls.__struct_defaults__
    from_end = names.index(name) - len(names)
    assert -from_end <= len(defaults), f"{cls.__name__}.{name} needs a default"
    default = defaults[from_end]
    factory = getattr(default, "factory", None)
    return default if factory is None else factory()


def narrowest(kind: Kind, *, flexible: bool) -> int:
    """The fewest bytes that a value of this kind can take: what bounds a declared count."""
    match kind:
        case Fixed():
            return kind.width
        case Sized("string"):
            return 1 if flexible else 2
        case Sized() | ArrayOf():
            return 1 if flexible else 4
        case Part():
            return int(flexible) + sum(
                1 if isinstance(field.kind, Part) and field.nullable else narrowest(field.kind, flexible=flexible)
                for field in kind.fields
            )


def _part(cls: type[Struct], version: int, flexible: bool) -> Part:
    hints = _hints(cls)
    present = [_field(name, hints[name], version, flexible) for name in cls.__struct_fields__]
    fields = [field for field in present if field is not None]
    return Part(
        cls,
        flexible,
        tuple(field for field in fields if field.tag is None),
        tuple(sorted((field for field in fields if field.tag is not None), key=lambda field: field.tag or 0)),
    )


@cache
def _hints(cls: type[Struct]) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _field(name: str, hint: Any, version: int, flexible: bool) -> Field | None:
    """The field, or None when this version has no such field."""
    marks = hint.__metadata__ if get_origin(hint) is Annotated else ()
    for mark in marks:
        if isinstance(mark, Versions) and not mark.first <= version <= mark.last:
            return None
        if isinstance(mark, Tag) and version < mark.since:
            return None
    tag = next((mark.number for mark in marks if isinstance(mark, Tag)), None)
    assert tag is None or flexible, f"{name} is tagged in a version that has no tagged fields"
    kind, optional = _kind(hint, version, flexible)
    nullable = optional and all(version >= mark.version for mark in marks if isinstance(mark, NullableSince))
    return Field(name, kind, nullable, tag)


def _kind(hint: Any, version: int, flexible: bool) -> tuple[Kind, bool]:
    """What a type hint means on the wire, and whether it allows None."""
    if get_origin(hint) is Annotated:
        primitive = next((mark for mark in hint.__metadata__ if isinstance(mark, Primitive)), None)
        if primitive is not None:
            return _leaf(primitive), False
        return _kind(get_args(hint)[0], version, flexible)
    if get_origin(hint) in (Union, types.UnionType):
        (present,) = (choice for choice in get_args(hint) if choice is not types.NoneType)
        return _kind(present, version, flexible)[0], True
    if get_origin(hint) is list:
        return ArrayOf(_kind(get_args(hint)[0], version, flexible)[0]), False
    assert issubclass(hint, Struct), f"{hint} cannot be put on the wire"
    return _part(hint, version, flexible), False


def _leaf(primitive: Primitive) -> Fixed | Sized:
    if primitive.code is not None:
        return Fixed(primitive.code)
    assert primitive.name in ("string", "bytes", "records")
    return Sized(primitive.name)  # type: ignore[arg-type]
