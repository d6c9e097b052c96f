"""Every message in every version that is served: the same bytes as two other implementations, both ways.

kafka-python carries Kafka's own message definitions and kio was generated from them, each with a codec of its own. A
message is made at random with all the fields that any version has; for each version it is trimmed to what that
version can say, and then all three must agree on its bytes.
"""

from __future__ import annotations

import datetime as dt
import importlib
import io
import pkgutil
import types
import uuid
import warnings
from collections.abc import Generator
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_writer
from kio.static.constants import EntityType

from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.codec import decode, decode_in_steps, encode, encode_in_steps
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.layout import ArrayOf, Field, Fixed, Part, Sized, default_of, layout
from zurau.wire.kafka.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from zurau.wire.kafka.schema import Message, Primitive

REQUESTS = [(api.request, api.versions) for api in APIS.values()]
RESPONSES = [(api.response, api.versions) for api in APIS.values()]
CONSUMER_DATA = [(cls, cls.versions) for cls in (ConsumerProtocolSubscription, ConsumerProtocolAssignment)]
MESSAGES = [pytest.param(cls, versions, id=cls.__name__) for cls, versions in REQUESTS + RESPONSES]
MESSAGES_AND_DATA = MESSAGES + [pytest.param(cls, versions, id=cls.__name__) for cls, versions in CONSUMER_DATA]
#: kafka-python does not have these. kio does.
NOT_IN_KAFKA_PYTHON = {"UnregisterBroker", "AddRaftVoter", "RemoveRaftVoter"}
IN_KAFKA_PYTHON = [
    each
    for each in MESSAGES_AND_DATA
    if str(each.id).removesuffix("Request").removesuffix("Response") not in NOT_IN_KAFKA_PYTHON
]

#: There are as many tests as messages, and each goes through all versions.
fewer_examples = settings(
    max_examples=settings().max_examples // 8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


# Random messages, from the declarations alone


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


#: A length that takes two bytes as a varint now and then.
texts = st.text(max_size=6) | st.just("zürau" * 30)
blobs = st.binary(max_size=6) | st.just(b"\0" * 200)
LEAVES = {
    "int8": integers(8),
    "int16": integers(16),
    "int32": integers(32),
    "int64": integers(64),
    "uint16": st.integers(0, 2**16 - 1),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": texts,
    "bytes": blobs,
    "records": blobs,
}
NAMED = {
    "error_code": st.sampled_from([int(code) for code in ErrorCode]),
    "topic_config_error_code": st.sampled_from([int(code) for code in ErrorCode]),
    # kio turns these into dates and durations, which do not reach as far.
    "log_append_time_ms": st.integers(-1, 2**41),
    "retention_time_ms": st.integers(-1, 2**41),
    "transaction_start_time_ms": st.integers(0, 2**41),
}


@cache
def messages(cls: type) -> st.SearchStrategy[Any]:
    hints = get_type_hints(cls, include_extras=True)
    return st.builds(
        cls, **{name: NAMED[name] if name in NAMED else values(hints[name]) for name in cls.__struct_fields__}
    )


def values(hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) is Annotated:
        leaf = next((mark for mark in hint.__metadata__ if isinstance(mark, Primitive)), None)
        return LEAVES[leaf.name] if leaf else values(get_args(hint)[0])
    if get_origin(hint) is list:
        element = values(get_args(hint)[0])
        return st.lists(element, max_size=2)
    if types.NoneType in get_args(hint):
        return st.none() | values(get_args(hint)[0])
    return messages(hint)


def trim(message: Any, part: Part) -> Any:
    """The message as far as this version can express it."""
    kept = {field.name: trim_value(getattr(message, field.name), field) for field in (*part.fields, *part.tags)}
    return part.cls(**kept)


def trim_value(value: Any, field: Field) -> Any:
    if value is None:
        empty = {"string": "", "bytes": b"", "records": b""}
        return None if field.nullable else empty[field.kind.name] if isinstance(field.kind, Sized) else []
    if isinstance(field.kind, Part):
        return trim(value, field.kind)
    if isinstance(field.kind, ArrayOf):
        return [trim_value(item, Field("", field.kind.element, nullable=False)) for item in value]
    return value


def agrees(message: Message, version: int, theirs: bytes) -> None:
    assert b"".join(encode(message, version)) == theirs
    decoded, end = decode(type(message), version, theirs)
    assert (decoded, end) == (message, len(theirs))
    # In steps or in one go: the same.
    assert b"".join(finish(encode_in_steps(message, version))) == theirs
    assert finish(decode_in_steps(type(message), version, memoryview(theirs), 0, 1 << 30)) == (message, len(theirs))


def finish(steps: Generator[Any, None, Any]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            return finished.value


# kafka-python


@cache
def kafka_python_classes() -> dict[str, type]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it reads its definitions in an old way
        protocol = importlib.import_module("kafka.protocol")
        for module in pkgutil.walk_packages(protocol.__path__, "kafka.protocol."):
            if ".old" not in module.name and "generate" not in module.name:
                importlib.import_module(module.name)
        from kafka.protocol.api_data import ApiData
        from kafka.protocol.api_message import ApiMessage
    return {cls.__name__: cls for base in (ApiMessage, ApiData) for cls in base.__subclasses__()}


def to_kafka_python(value: Any, kind: Any, theirs: Any) -> Any:
    if value is None:
        return None
    match kind:
        case Fixed("16s"):
            return uuid.UUID(bytes=value)
        case ArrayOf(element):
            return [to_kafka_python(item, element, theirs) for item in value]
        case Part():
            return struct_to_kafka_python(value, kind, theirs)
    return as_bits(value) if theirs._type_str == "bitfield" else value


def struct_to_kafka_python(value: Any, part: Part, theirs: Any) -> dict[str, Any]:
    chosen = [field for field in (*part.fields, *part.tags) if field.tag is None or not is_default(value, field)]
    names = {field.name: their_name(theirs, field.name) for field in chosen}
    return {
        names[field.name]: to_kafka_python(getattr(value, field.name), field.kind, theirs.fields[names[field.name]])
        for field in chosen
    }


def as_bits(value: int) -> set[int]:
    return {bit for bit in range(32) if value & 1 << bit}


def their_name(theirs: Any, name: str) -> str:
    """kafka-python has one name for the authorized operations of clusters, topics and groups."""
    return name if name in theirs.fields else name.removeprefix("cluster_").removeprefix("topic_")


def is_default(owner: Any, field: Field) -> bool:
    return getattr(owner, field.name) == default_of(type(owner), field.name)


@pytest.mark.parametrize(("cls", "versions"), IN_KAFKA_PYTHON)
@fewer_examples
@given(data=st.data())
def test_bytes_are_those_of_kafka_python(cls, versions, data):
    message = data.draw(messages(cls))
    theirs = kafka_python_classes()[cls.__name__]._struct
    for version in versions:
        part = layout(cls, version)
        trimmed = trim(message, part)
        fields = to_kafka_python(trimmed, part, theirs)
        agrees(trimmed, version, theirs.encode(fields, version=version, compact=part.flexible, tagged=part.flexible))


@pytest.mark.parametrize(("cls", "versions"), IN_KAFKA_PYTHON)
def test_fields_are_those_of_the_message_definitions(cls, versions):
    theirs = kafka_python_classes()[cls.__name__]._struct
    for version in versions:
        assert facts(layout(cls, version), theirs) == their_facts(theirs, version)


def facts(part: Part, theirs: Any) -> dict[str, Any]:
    """Of each field by name: its tag, whether it is nullable, and what is in it."""
    found = {}
    for field in (*part.fields, *part.tags):
        name = their_name(theirs, field.name)
        inner = field.kind.element if isinstance(field.kind, ArrayOf) else field.kind
        nested = facts(inner, theirs.fields[name]) if isinstance(inner, Part) else None
        found[name] = (field.tag, field.nullable, nested)
    return found


def their_facts(theirs: Any, version: int) -> dict[str, Any]:
    return {
        field.name: (
            field.tag if field.tagged_field_q(version) else None,
            bool(field.nullable_for_version_q(version)),
            their_facts(field, version) if field.is_struct() or field.is_struct_array() else None,
        )
        for field in theirs.fields.values()
        if field.for_version_q(version)
    }


@pytest.mark.parametrize(("cls", "versions"), IN_KAFKA_PYTHON)
def test_defaults_are_those_of_the_message_definitions(cls, versions):
    theirs = kafka_python_classes()[cls.__name__]._struct
    assert list(differing_defaults(layout(cls, versions[-1]), theirs)) == []


def differing_defaults(part: Part, theirs: Any):
    required = {field.name for field in msgspec.structs.fields(part.cls) if field.required}
    for field in (*part.fields, *part.tags):
        their_field = theirs.fields[their_name(theirs, field.name)]
        # It has a set of bits for authorized operations, and None for the set that means "not asked".
        comparable = "default" in their_field._json and their_field._type_str != "bitfield"
        if comparable and field.name not in required and not isinstance(field.kind, Part):
            ours = default_of(part.cls, field.name)
            if ours != their_field.default:
                yield part.cls.__name__, field.name, ours, their_field.default
        inner = field.kind.element if isinstance(field.kind, ArrayOf) else field.kind
        if isinstance(inner, Part):
            yield from differing_defaults(inner, their_field)


# kio


def to_kio(value: Any, cls: type) -> Any:
    """Our struct as kio's dataclass, which leaves `_ms` out of names because it has types for times."""
    arguments = {}
    for field in dataclass_fields(cls):
        ours = getattr(value, field.name, None) if hasattr(value, field.name) else getattr(value, field.name + "_ms")
        arguments[field.name] = to_kio_value(ours, field.type, field.metadata.get("kafka_type"))
    return cls(**arguments)


def to_kio_value(value: Any, hint: Any, kafka_type: str | None) -> Any:
    choices = [choice for choice in get_args(hint) if choice not in (types.NoneType, Ellipsis)]
    if isinstance(value, list):
        element = next(iter(choices)) if get_origin(hint) is tuple else get_args(choices[0])[0]
        return tuple(to_kio_value(item, element, kafka_type) for item in value)
    plain = choices[0] if choices else hint
    if value is not None and is_dataclass(plain):
        return to_kio(value, plain)
    match kafka_type:
        case "error_code":
            return KioErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return dt.timedelta(milliseconds=value)
        case "datetime_i64":
            return None if value == -1 else dt.datetime.fromtimestamp(value / 1000, dt.UTC)
        case "uuid":
            return uuid.UUID(bytes=value)
    return value


def kio_bytes(message: Message, name: str, version: int, kind: EntityType) -> bytes:
    cls = load_entity_schema(name, version, kind)
    buffer = io.BytesIO()
    entity_writer(cls)(buffer, to_kio(message, cls))
    return buffer.getvalue()


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
@fewer_examples
@given(data=st.data())
def test_bytes_are_those_of_kio(api, data):
    for cls, kind in ((api.request, EntityType.request), (api.response, EntityType.response)):
        message = data.draw(messages(cls))
        for version in api.versions:
            trimmed = trim(message, layout(cls, version))
            agrees(trimmed, version, kio_bytes(trimmed, api.module, version, kind))
