"""The vocabulary in which every Kafka message is declared, once, with versions on its fields.

    class PartitionProduceResponse(Struct):
        index: i32
        error_code: i16
        base_offset: i64
        log_append_time_ms: Annotated[i64, since(2)] = -1
        record_errors: Annotated[list[BatchIndexAndErrorMessage], since(8)] = []
        error_message: Annotated[string | None, since(8)] = None
        current_leader: Annotated[LeaderIdAndEpoch, tagged(0, since=10)] = LeaderIdAndEpoch()

    class ProduceResponse(Message):
        api_key: ClassVar = 0
        flexible_since: ClassVar = 9
        responses: list[TopicProduceResponse]
        throttle_time_ms: Annotated[i32, since(1)] = 0

A field that a version does not have is left out when encoding and takes its default when decoding. `X | None` is
nullable in every version that has the field, unless `nullable_since(n)` says otherwise. `codec.py` compiles one flat
decoder and one flat encoder for each message and version, on first use.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Generic, TypeVar, dataclass_transform

import msgspec

from zurau.ports import Buffer


class Primitive(msgspec.Struct, frozen=True):
    """How a leaf is encoded; `code` is its `struct` letter when its width is fixed."""

    name: str
    code: str | None = None


i8 = Annotated[int, Primitive("int8", "b")]
i16 = Annotated[int, Primitive("int16", "h")]
u16 = Annotated[int, Primitive("uint16", "H")]
i32 = Annotated[int, Primitive("int32", "i")]
u32 = Annotated[int, Primitive("uint32", "I")]
i64 = Annotated[int, Primitive("int64", "q")]
f64 = Annotated[float, Primitive("float64", "d")]
boolean = Annotated[bool, Primitive("bool", "?")]
uuid = Annotated[bytes, Primitive("uuid", "16s")]
string = Annotated[str, Primitive("string")]
#: Copied out: small things that outlive the frame (subscriptions, assignments).
blob = Annotated[bytes, Primitive("bytes")]
#: Record batches: a view into the frame when decoded, passed on by reference when encoded. Never copied.
records = Annotated[Buffer, Primitive("records")]


#: In every field that lists allowed operations as bits: nobody asked, so nothing is said.
NOT_ASKED_FOR = -(2**31)


class Versions(msgspec.Struct, frozen=True):
    """The versions of a message in which a field exists."""

    first: int = 0
    last: int = 32767


class NullableSince(msgspec.Struct, frozen=True):
    version: int


class Tag(msgspec.Struct, frozen=True):
    """A tagged field: it exists from `since` on, outside the fixed layout; left out if default."""

    number: int
    since: int


def since(version: int) -> Versions:
    return Versions(first=version)


def between(first: int, last: int) -> Versions:
    return Versions(first, last)


def until(version: int) -> Versions:
    return Versions(last=version)


def nullable_since(version: int) -> NullableSince:
    return NullableSince(version)


def tagged(number: int, *, since: int) -> Tag:
    return Tag(number, since)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Struct(msgspec.Struct, frozen=True, gc=False):
    """A part of a message: a value, not changed once made.

    Fields are given by name. A class in which a required field follows an optional one has to say `kw_only=True`,
    because msgspec does not inherit it. (A metaclass could say it for all, but then CPython 3.11 makes them three
    times slower.) Being frozen lets a default be shared, so that an untouched tagged field is known by its identity.
    """


class Message(Struct):
    """A whole message: a request, a response, or a record of a machine's log (which has no API key)."""

    api_key: ClassVar[int] = -1
    #: The first version with compact lengths and tagged fields; None when there is none.
    flexible_since: ClassVar[int | None] = None
    #: The versions that `codec.decode_versioned` accepts; those of an API are in `apis.py`.
    versions: ClassVar[range] = range(32768)


R = TypeVar("R", bound=Message)


class Request(Message, Generic[R]):
    """A message that is answered with an `R`."""
