"""The rules of the wire format, each on a message made for it."""

from __future__ import annotations

import struct
import traceback
from typing import Annotated, ClassVar

import pytest

from zurau.errors import ProtocolViolation
from zurau.wire.kafka.codec import decode, decode_versioned, encode, encode_versioned, peek_version
from zurau.wire.kafka.schema import (
    Message,
    Struct,
    between,
    blob,
    boolean,
    f64,
    i8,
    i16,
    i32,
    i64,
    nullable_since,
    records,
    since,
    string,
    tagged,
    until,
    uuid,
)

OLD, FLEXIBLE = 0, 1


class Numbers(Message):
    flexible_since: ClassVar = 1

    tiny: i8
    small: i16
    medium: i32
    large: i64
    real: f64
    truth: boolean
    identity: uuid


class Texts(Message):
    flexible_since: ClassVar = 1

    name: string
    note: string | None = None


class Bytes(Message):
    flexible_since: ClassVar = 1

    raw: blob
    maybe: blob | None = None


class Batches(Message):
    flexible_since: ClassVar = 1

    before: i8
    batch: records | None
    after: i8


class Item(Struct):
    key: string
    number: i32


class Lists(Message):
    flexible_since: ClassVar = 1

    numbers: list[i32] = []
    names: list[string] = []
    items: list[Item] = []
    maybe: list[i32] | None = None
    nested: list[list[i16]] = []
    identities: list[uuid] = []


class Nested(Message):
    flexible_since: ClassVar = 1

    plain: Item
    maybe: Item | None = None


class Place(Struct):
    node: i32 = -1
    rack: string | None = None


class Tags(Message):
    flexible_since: ClassVar = 1

    fixed: i8 = 0
    number: Annotated[i32, tagged(0, since=1)] = -1
    place: Annotated[Place, tagged(3, since=1)] = Place()
    later: Annotated[list[string], tagged(7, since=2)] = []
    name: Annotated[string | None, tagged(200, since=1)] = None


class Evolving(Message, kw_only=True):
    old: Annotated[i8, until(1)] = 10
    new: Annotated[i8, since(2)] = 20
    while_it_lasted: Annotated[i8, between(1, 2)] = 30
    name: Annotated[string | None, nullable_since(2)]


def octets(message: Message, version: int) -> bytes:
    return b"".join(encode(message, version))


def round_trip(message: Message, version: int) -> Message:
    encoded = octets(message, version)
    decoded, end = decode(type(message), version, encoded)
    assert end == len(encoded)
    return decoded


def refused(cls: type[Message], version: int, buffer: bytes) -> str:
    with pytest.raises(ProtocolViolation) as caught:
        decode(cls, version, buffer)
    return str(caught.value)


# Numbers


def test_numbers_are_big_endian_and_of_fixed_width():
    message = Numbers(tiny=-1, small=2, medium=3, large=-4, real=0.5, truth=True, identity=bytes(range(16)))
    expected = "ff 0002 00000003 fffffffffffffffc 3fe0000000000000 01 000102030405060708090a0b0c0d0e0f"
    assert octets(message, OLD).hex() == expected.replace(" ", "")
    assert round_trip(message, OLD) == message


def test_a_flexible_struct_ends_with_its_tagged_fields():
    message = Numbers(tiny=0, small=0, medium=0, large=0, real=0.0, truth=False, identity=bytes(16))
    assert octets(message, FLEXIBLE) == octets(message, OLD) + b"\0"


def test_any_byte_but_zero_means_true():
    buffer = bytes(23) + b"\x02" + bytes(16)
    assert decode(Numbers, OLD, buffer)[0].truth is True


def test_numbers_cut_short_are_refused():
    assert refused(Numbers, OLD, bytes(39)) == "Numbers v0 is cut short"


# Strings


def test_a_string_has_its_length_before_it_and_null_is_minus_one():
    assert octets(Texts(name="é"), OLD) == b"\0\x02\xc3\xa9\xff\xff"
    assert round_trip(Texts(name="é", note=""), OLD) == Texts(name="é", note="")


def test_a_compact_string_has_its_length_plus_one_and_null_is_zero():
    assert octets(Texts(name="é"), FLEXIBLE) == b"\x03\xc3\xa9\0\0"
    assert round_trip(Texts(name="", note=""), FLEXIBLE) == Texts(name="", note="")


@pytest.mark.parametrize("length", [126, 127, 128, 16_382, 16_383, 32_767])
def test_long_strings_take_longer_varints(length):
    message = Texts(name="x" * length, note="y" * length)
    assert round_trip(message, FLEXIBLE) == message


def test_a_compact_string_longer_than_an_int16_can_say_is_refused():
    buffer = b"\x81\x80\x02" + bytes(32_768) + b"\0\0"
    assert "a string of 32768 bytes" in refused(Texts, FLEXIBLE, buffer)


@pytest.mark.parametrize(
    ("version", "buffer"),
    [(OLD, b"\xff\xff\xff\xff"), (OLD, b"\xff\xfe\xff\xff"), (OLD, b"\x80\0\xff\xff"), (FLEXIBLE, b"\0\0\0")],
    ids=["null", "minus two", "most negative", "compact null"],
)
def test_a_string_that_may_not_be_null_and_has_no_length_is_refused(version, buffer):
    assert "name runs past the end or is null" in refused(Texts, version, buffer)


def test_a_nullable_string_of_length_minus_two_is_refused():
    assert "note has a negative length" in refused(Texts, OLD, b"\0\0\xff\xfe")


@pytest.mark.parametrize(
    ("version", "buffer"),
    [(OLD, b"\0\x05abc"), (OLD, b"\0\0\0\x05abc"), (FLEXIBLE, b"\x06abc"), (FLEXIBLE, b"\x01\x06abc")],
)
def test_a_string_longer_than_the_buffer_is_refused(version, buffer):
    assert "runs past the end" in refused(Texts, version, buffer)


def test_a_string_that_is_not_utf8_is_refused():
    assert "not UTF-8" in refused(Texts, FLEXIBLE, b"\x03\xc3\x28\0\0")


# Bytes and records


@pytest.mark.parametrize("version", [OLD, FLEXIBLE])
def test_bytes_are_copied_out_of_the_buffer(version):
    buffer = bytearray(octets(Bytes(raw=b"abc"), version))
    decoded, _ = decode(Bytes, version, buffer)
    buffer[:] = bytes(len(buffer))
    assert decoded == Bytes(raw=b"abc", maybe=None)
    assert type(decoded.raw) is bytes


@pytest.mark.parametrize(
    ("version", "buffer"),
    [
        (OLD, b"\xff\xff\xff\xff"),
        (OLD, b"\x7f\xff\xff\xffab"),
        (FLEXIBLE, b"\0\0\0"),
        (FLEXIBLE, b"\xff\xff\xff\xff\x0f"),
    ],
    ids=["null", "too long", "compact null", "compact too long"],
)
def test_bytes_that_are_null_or_too_long_are_refused(version, buffer):
    assert "raw runs past the end or is null" in refused(Bytes, version, buffer)


@pytest.mark.parametrize("version", [OLD, FLEXIBLE])
def test_records_are_encoded_by_reference_as_a_chunk_of_their_own(version):
    batch = bytearray(1000)
    chunks = encode(Batches(before=1, batch=batch, after=2), version)
    assert len(chunks) == 3
    assert chunks[1] is batch


@pytest.mark.parametrize("version", [OLD, FLEXIBLE])
def test_records_are_decoded_as_a_writable_view_into_the_frame(version):
    frame = bytearray(octets(Batches(before=1, batch=b"batch", after=2), version))
    decoded, _ = decode(Batches, version, memoryview(frame))
    decoded.batch[0:1] = b"B"
    assert b"Batch" in frame
    assert decoded.after == 2


@pytest.mark.parametrize("version", [OLD, FLEXIBLE])
@pytest.mark.parametrize("batch", [None, b""])
def test_records_may_be_null_or_empty(version, batch):
    message = Batches(before=1, batch=batch, after=2)
    assert len(encode(message, version)) == 1
    assert round_trip(message, version) == message


# Arrays


@pytest.mark.parametrize("version", [OLD, FLEXIBLE])
def test_arrays_of_everything_survive_a_round_trip(version):
    message = Lists(
        numbers=[1, -2],
        names=["a", ""],
        items=[Item(key="k", number=1), Item(key="", number=2)],
        maybe=[3],
        nested=[[1, 2], [], [3]],
        identities=[bytes(range(16)), bytes(16)],
    )
    assert round_trip(message, version) == message


def test_a_null_array_is_not_an_empty_one():
    assert round_trip(Lists(maybe=None), FLEXIBLE).maybe is None
    assert round_trip(Lists(maybe=[]), FLEXIBLE).maybe == []


def test_arrays_of_more_than_127_elements_have_a_longer_count():
    message = Lists(numbers=list(range(500)), items=[Item(key=str(number), number=number) for number in range(300)])
    assert round_trip(message, FLEXIBLE) == message


@pytest.mark.parametrize(
    ("version", "buffer"),
    [(OLD, b"\xff\xff\xff\xff"), (OLD, b"\x80\0\0\0"), (FLEXIBLE, b"\0")],
    ids=["null", "negative", "compact null"],
)
def test_an_array_that_may_not_be_null_and_has_no_count_is_refused(version, buffer):
    assert "numbers has more elements than bytes or is null" in refused(Lists, version, buffer + bytes(40))


def test_a_nullable_array_of_minus_two_elements_is_refused():
    assert "maybe has a negative length" in refused(Lists, OLD, bytes(12) + b"\xff\xff\xff\xfe" + bytes(8))


@pytest.mark.parametrize("buffer", [b"\0\0\0\x03" + bytes(11), b"\x7f\xff\xff\xff" + bytes(100)])
def test_a_count_beyond_what_the_buffer_can_hold_is_refused(buffer):
    assert "more elements than bytes" in refused(Lists, OLD, buffer)


def test_a_count_is_bounded_by_the_least_that_its_elements_can_take():
    two_items = b"\0\0\0\0\0\0\0\0\0\0\0\x02" + bytes(11)
    assert "items has more elements than bytes" in refused(Lists, OLD, two_items)


# Structs


def test_a_struct_lies_within_its_owner_without_a_mark():
    assert octets(Nested(plain=Item(key="k", number=1)), OLD) == b"\0\x01k\0\0\0\x01\xff"


@pytest.mark.parametrize("version", [OLD, FLEXIBLE])
def test_a_nullable_struct_is_preceded_by_one_or_minus_one(version):
    there = Nested(plain=Item(key="k", number=1), maybe=Item(key="m", number=2))
    missing = Nested(plain=Item(key="k", number=1), maybe=None)
    assert round_trip(there, version) == there
    assert round_trip(missing, version) == missing


def test_a_nullable_struct_that_is_neither_there_nor_null_is_refused():
    assert "maybe is neither present nor null" in refused(Nested, OLD, b"\0\x01k\0\0\0\x01\0")


# Tagged fields


def test_tagged_fields_with_their_default_are_left_out():
    assert octets(Tags(), FLEXIBLE) == b"\0\0"
    assert octets(Tags(place=Place(node=-1)), FLEXIBLE) == b"\0\0"


def test_tagged_fields_are_written_in_order_with_their_size():
    message = Tags(fixed=1, place=Place(node=7, rack="r"), number=5)
    assert octets(message, FLEXIBLE).hex(" ") == "01 02 00 04 00 00 00 05 03 07 00 00 00 07 02 72 00"
    assert round_trip(message, FLEXIBLE) == message


def test_a_tag_may_be_large_and_its_value_long():
    message = Tags(name="n" * 300)
    assert round_trip(message, FLEXIBLE) == message


def test_a_tagged_field_from_a_later_version_is_neither_written_nor_read():
    message = Tags(later=["a"])
    assert octets(message, 1) == b"\0\0"
    assert decode(Tags, 1, octets(message, 2))[0] == Tags()
    assert round_trip(message, 2) == message


def test_an_old_version_has_no_tagged_fields():
    assert octets(Tags(fixed=1, number=5), OLD) == b"\x01"
    assert decode(Tags, OLD, b"\x01")[0] == Tags(fixed=1)


def test_unknown_tagged_fields_are_skipped():
    buffer = b"\0\x02\x05\x03abc\x00\x04\0\0\0\x09"
    assert decode(Tags, FLEXIBLE, buffer) == (Tags(number=9), len(buffer))
    assert decode(Texts, FLEXIBLE, b"\x01\0\x01\x63\x02ab") == (Texts(name=""), 7)


@pytest.mark.parametrize("cls", [Texts, Tags])
def test_more_than_127_tagged_fields_are_refused_before_they_are_read(cls):
    buffer = (b"\x01\0" if cls is Texts else b"\0") + b"\x80\x02" + b"\x63\0" * 256
    assert "more than 127 tagged fields" in refused(cls, FLEXIBLE, buffer)


def test_elements_are_counted_over_all_arrays_of_a_message():
    message = Lists(numbers=[1, 2, 3], items=[Item(key="a", number=1), Item(key="b", number=2)])
    buffer = b"".join(encode(message, FLEXIBLE))
    assert decode(Lists, FLEXIBLE, buffer, elements_max=5)[0] == message
    with pytest.raises(ProtocolViolation, match="more elements than one message may hold"):
        decode(Lists, FLEXIBLE, buffer, elements_max=4)


@pytest.mark.parametrize("cls", [Texts, Tags])
def test_a_tagged_field_longer_than_the_buffer_is_refused(cls):
    buffer = (b"\x01\0" if cls is Texts else b"\0") + b"\x01\x63\x7fab"
    assert "tagged field 99 runs past the end" in refused(cls, FLEXIBLE, buffer)


def test_a_known_tagged_field_that_does_not_fill_its_size_is_refused():
    assert "number does not fill its tagged field" in refused(Tags, FLEXIBLE, b"\0\x01\x00\x05\0\0\0\x09\0")


# Varints


@pytest.mark.parametrize("varint", [b"\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\x1f", b"\x80\x80\x80\x80\x80\0"])
def test_a_varint_of_more_than_32_bits_is_refused(varint):
    assert "longer than 32 bits" in refused(Lists, FLEXIBLE, varint + bytes(100))


def test_a_varint_padded_with_zeros_is_understood():
    assert decode(Texts, FLEXIBLE, b"\x82\0a\0\0")[0] == Texts(name="a")


# Versions


@pytest.mark.parametrize(
    ("version", "encoded"),
    [(0, b"\x01\0\0"), (1, b"\x01\x03\0\0"), (2, b"\x02\x03\0\0"), (3, b"\x02\0\0")],
)
def test_a_version_writes_only_the_fields_it_has(version, encoded):
    message = Evolving(old=1, new=2, while_it_lasted=3, name="")
    assert octets(message, version) == encoded


def test_a_field_that_a_version_lacks_takes_its_default():
    decoded, _ = decode(Evolving, 3, b"\x02\xff\xff")
    assert decoded == Evolving(old=10, new=2, while_it_lasted=30, name=None)


def test_null_is_refused_before_the_version_that_allows_it():
    assert "name" in refused(Evolving, 1, b"\x01\x03\xff\xff")


def test_decoding_begins_at_the_position_given_and_says_where_it_ended():
    assert decode(Texts, OLD, b"--\0\x01a\xff\xff--", 2) == (Texts(name="a"), 7)


def test_tracebacks_show_the_generated_code():
    with pytest.raises(ProtocolViolation) as caught:
        decode(Numbers, OLD, b"")
    shown = "".join(traceback.format_exception(caught.value))
    assert "unpack_from_b_h_i_q_d_bool_uuid(buffer, at)" in shown


# Records of a log


class Note(Message):
    versions: ClassVar = range(1, 3)

    text: string
    author: Annotated[string, since(2)] = ""


def test_a_record_of_a_log_begins_with_its_version():
    assert encode_versioned(Note(text="a"), 1) == b"\0\x01\0\x01a"
    assert peek_version(b"\0\x02rest") == 2
    assert decode_versioned(Note, encode_versioned(Note(text="a", author="b"), 2)) == Note(text="a", author="b")


@pytest.mark.parametrize(
    ("buffer", "reason"),
    [
        (b"\0\x03\0\x01a", "Note has no version 3"),
        (b"\xff\xff\0\x01a", "Note has no version -1"),
        (b"\0\x01\0\x01ab", "1 bytes follow Note v1"),
        (b"\0\x01\0\x02a", "runs past the end"),
        (b"\0", "too short"),
    ],
)
def test_a_record_that_is_not_exactly_one_message_is_refused(buffer, reason):
    with pytest.raises(ProtocolViolation, match=reason):
        decode_versioned(Note, buffer)


@pytest.mark.parametrize("version", [OLD, FLEXIBLE])
def test_a_string_that_nobody_could_read_is_not_written(version):
    longest = encode_versioned(Texts(name="n" * 32_767), version)
    assert decode_versioned(Texts, longest).name == "n" * 32_767
    with pytest.raises((ValueError, struct.error)):
        encode_versioned(Texts(name="n" * 32_768), version)
