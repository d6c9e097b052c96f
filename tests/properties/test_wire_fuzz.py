"""Whatever the bytes are, every decoder of every version returns a message or raises `ProtocolViolation`.

It also never makes more than the bytes can account for, which is what a peer with a large number and a short message
would like it to do.
"""

from __future__ import annotations

import tracemalloc
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zurau.errors import ProtocolViolation
from zurau.wire.kafka.apis import APIS
from zurau.wire.kafka.codec import decode, encode
from zurau.wire.kafka.layout import ArrayOf, Fixed, Kind, Part, Sized, layout
from zurau.wire.kafka.messages import consumer_protocol, group_records
from zurau.wire.kafka.schema import Message

RECORDS = [
    consumer_protocol.ConsumerProtocolSubscription,
    consumer_protocol.ConsumerProtocolAssignment,
    group_records.OffsetCommitKey,
    group_records.OffsetCommitValue,
    group_records.GroupMetadataKey,
    group_records.GroupMetadataValue,
]
MESSAGES = [
    *((api.request, api.versions) for api in APIS.values()),
    *((api.response, api.versions) for api in APIS.values()),
    *((cls, cls.versions) for cls in RECORDS),
]
every_message = pytest.mark.parametrize(
    ("cls", "versions"), [pytest.param(cls, versions, id=cls.__name__) for cls, versions in MESSAGES]
)

#: There are as many tests as messages.
fewer_examples = settings(max_examples=settings().max_examples // 3)

#: Numbers that a decoder must not believe: as int32 or int16, and as a varint.
HOSTILE = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xfe",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\0",
)


@cache
def sample(cls: type[Message], version: int) -> bytes:
    """A message of this version in which nothing is null, empty or default."""
    return b"".join(encode(filled(layout(cls, version)), version))


def filled(kind: Kind) -> Any:
    match kind:
        case Part():
            return kind.cls(**{field.name: filled(field.kind) for field in (*kind.fields, *kind.tags)})
        case ArrayOf(element):
            return [filled(element)]
        case Sized("string"):
            return "events"
        case Sized():
            return b"bytes"
        case Fixed("16s"):
            return b"0123456789abcdef"
        case Fixed():
            return 1


def decodes_or_is_refused(cls: type[Message], version: int, buffer: bytes) -> bool:
    try:
        _, end = decode(cls, version, buffer)
    except ProtocolViolation:
        return False
    assert end <= len(buffer)
    return True


@every_message
def test_a_message_cut_short_anywhere_is_refused(cls, versions):
    for version in versions:
        whole = sample(cls, version)
        assert decodes_or_is_refused(cls, version, whole)
        assert not any(decodes_or_is_refused(cls, version, whole[:length]) for length in range(len(whole)))


@every_message
def test_large_numbers_anywhere_do_not_make_a_decoder_use_memory(cls, versions):
    for version in versions:
        decodes_or_is_refused(cls, version, sample(cls, version))  # compiles it before memory is counted
    tracemalloc.start()
    try:
        for version in versions:
            whole = sample(cls, version)
            for position in range(len(whole)):
                for number in HOSTILE:
                    decodes_or_is_refused(cls, version, whole[:position] + number + whole[position + len(number) :])
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 256 * 1024


@every_message
@fewer_examples
@given(data=st.data())
def test_random_bytes_decode_or_are_refused(cls, versions, data):
    buffer = data.draw(st.binary(max_size=60))
    for version in versions:
        decodes_or_is_refused(cls, version, buffer)


@every_message
@fewer_examples
@given(data=st.data())
def test_damaged_messages_decode_or_are_refused(cls, versions, data):
    version = data.draw(st.sampled_from(versions))
    whole = sample(cls, version)
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, len(whole)))
    decodes_or_is_refused(cls, version, whole[:start] + data.draw(st.binary(max_size=8)) + whole[stop:])


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_a_changed_request_that_still_decodes_survives_a_round_trip(api):
    for version in api.versions:
        whole = sample(api.request, version)
        for position, byte in enumerate(whole):
            changed = whole[:position] + bytes((byte ^ 1,)) + whole[position + 1 :]
            if decodes_or_is_refused(api.request, version, changed):
                message, _ = decode(api.request, version, changed)
                assert decode(api.request, version, b"".join(encode(message, version)))[0] == message
