"""Frames between brokers: parts, checksums, and what is refused."""

from __future__ import annotations

import struct

import pytest

from zurau.errors import ProtocolViolation
from zurau.wire.peer.fields import Fields, encode_tagged, encode_text
from zurau.wire.peer.frames import HEADER_BYTES, Kind, decode_frame, encode_frame, kind_of


def sent(kind: Kind = Kind.SESSION_REQUEST, head: bytes = b"said", data: bytes = b"records") -> memoryview:
    """A frame as it arrives, without its size."""
    return memoryview(bytearray(b"".join(encode_frame(kind, [head], [data]))))[4:]


def fields(*pieces: bytes) -> Fields:
    return Fields(memoryview(b"".join(pieces)))


def test_a_frame_gives_back_its_kind_head_and_data():
    kind, head, data = decode_frame(sent())
    assert (kind, bytes(head), bytes(data)) == (Kind.SESSION_REQUEST, b"said", b"records")


def test_data_is_handed_on_by_reference_in_both_directions():
    records = b"records"
    assert encode_frame(Kind.SESSION_REQUEST, [b"said"], [records])[1] is records
    frame = sent()
    assert decode_frame(frame)[2].obj is frame.obj


def test_the_size_before_a_frame_counts_everything_behind_it():
    whole = b"".join(encode_frame(Kind.GOODBYE, [b"said"], [b"records"]))
    assert struct.unpack_from(">i", whole) == (len(whole) - 4,)


@pytest.mark.parametrize("place", range(HEADER_BYTES + len(b"said")))
def test_a_changed_byte_anywhere_but_in_the_records_is_noticed(place):
    frame = sent()
    frame[place] ^= 0x20
    with pytest.raises(ProtocolViolation):
        decode_frame(frame)


def test_a_frame_that_lost_its_last_byte_is_noticed():
    with pytest.raises(ProtocolViolation, match="checksum"):
        decode_frame(sent()[:-1])


@pytest.mark.parametrize("length", [0, 1, HEADER_BYTES - 1])
def test_a_frame_that_is_too_short_for_its_header_is_refused(length):
    with pytest.raises(ProtocolViolation, match="shortest"):
        decode_frame(sent()[:length])


def test_a_head_that_is_longer_than_its_frame_is_refused():
    with pytest.raises(ProtocolViolation, match="a head of 4 bytes"):
        decode_frame(sent(data=b"")[:-1])


def test_the_kind_of_a_frame_is_seen_without_decoding_it():
    assert kind_of(sent(Kind.GOODBYE)) == Kind.GOODBYE
    assert kind_of(memoryview(b"")) == 0


def test_fields_are_taken_one_after_the_other():
    layout = struct.Struct(">hh")
    taken = fields(layout.pack(1, 2), encode_text("naïve"), layout.pack(3, 4), layout.pack(5, 6))
    assert taken.take(layout) == (1, 2)
    assert taken.text() == "naïve"
    assert list(taken.rows(layout, 2)) == [(3, 4), (5, 6)]
    assert taken.tagged() == {}


@pytest.mark.parametrize("count", [3, 4_000_000_000])
def test_more_rows_than_there_are_bytes_are_refused_at_once(count):
    with pytest.raises(ProtocolViolation, match="bytes expected where 4 are left"):
        fields(bytes(4)).rows(struct.Struct(">h"), count)


def test_a_text_that_is_not_utf_8_is_refused():
    with pytest.raises(ProtocolViolation, match="not UTF-8"):
        fields(b"\0\1\xff").text()


def test_tagged_fields_of_a_later_version_can_be_passed_over():
    tagged = fields(encode_tagged({7: b"new", 2: b""})).tagged()
    assert {tag: bytes(field) for tag, field in tagged.items()} == {2: b"", 7: b"new"}


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        (encode_tagged({1: b"cut off"})[:-1], "bytes expected"),
        (b"\0", "bytes expected"),
        (encode_tagged({1: b""}) * 2, "tagged field 1 behind"),
    ],
)
def test_bytes_behind_the_fields_that_are_no_tagged_fields_are_refused(rest, reason):
    with pytest.raises(ProtocolViolation, match=reason):
        fields(rest).tagged()
