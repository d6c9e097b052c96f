"""What a broker says of itself, and its last word."""

from __future__ import annotations

import struct

import pytest

from zurau.errors import MESSAGE_CHARACTERS_MAX, ProtocolViolation
from zurau.ids import BrokerId
from zurau.ports import Advertised, Handshake
from zurau.wire.peer.fields import encode_tagged, encode_text
from zurau.wire.peer.frames import HEADER_BYTES, Kind, decode_frame, encode_frame
from zurau.wire.peer.handshake import (
    MAGIC,
    MAJOR_VERSION,
    decode_goodbye,
    decode_handshake,
    encode_goodbye,
    encode_handshake,
)

HANDSHAKE = Handshake(
    BrokerId(3),
    "cluster",
    b"d" * 16,
    b"i" * 16,
    is_metadata_empty=True,
    listeners=(Advertised("kafka", "::1", 9092), Advertised("peer", "host", 65535)),
    rack="east",
    minor_version=2,
)


def arrived(pieces) -> memoryview:
    return memoryview(b"".join(pieces))[4:]


def with_head(head: bytes, kind: Kind = Kind.HANDSHAKE, data: bytes = b"") -> memoryview:
    return arrived(encode_frame(kind, [head], [data]))


def head_of(handshake: Handshake) -> bytes:
    return bytes(arrived(encode_handshake(handshake))[HEADER_BYTES:])


@pytest.mark.parametrize(
    "handshake",
    [HANDSHAKE, Handshake(BrokerId(0), "", bytes(16), bytes(16), is_metadata_empty=False)],
    ids=["everything", "nothing"],
)
def test_a_handshake_arrives_as_it_was_sent(handshake):
    assert decode_handshake(arrived(encode_handshake(handshake))) == handshake


def test_a_rack_without_a_name_is_not_the_same_as_none():
    unnamed = Handshake(BrokerId(1), "", bytes(16), bytes(16), is_metadata_empty=False, rack="")
    assert decode_handshake(arrived(encode_handshake(unnamed))).rack == ""


def test_fields_that_a_later_version_adds_are_passed_over():
    later = with_head(head_of(HANDSHAKE) + encode_tagged({0: b"anything"}))
    assert decode_handshake(later) == HANDSHAKE


def test_another_major_version_is_refused_whatever_follows_it():
    head = struct.pack(f">{len(MAGIC)}sHH", MAGIC, MAJOR_VERSION + 1, 0) + b"unknown"
    with pytest.raises(ProtocolViolation, match="at most one release apart"):
        decode_handshake(with_head(head))


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (with_head(b"another" + head_of(HANDSHAKE)), "not a broker of Zurau"),
        (with_head(head_of(HANDSHAKE), Kind.SESSION_REQUEST), "before the handshake"),
        (with_head(head_of(HANDSHAKE), data=b"more"), "not a handshake alone"),
        (with_head(head_of(HANDSHAKE)[:-1]), "bytes expected"),
        (arrived(encode_handshake(Handshake(BrokerId(-1), "", bytes(16), bytes(16), False))), "ids are 0 or more"),
    ],
    ids=["magic", "kind", "data", "short", "id"],
)
def test_what_is_no_handshake_is_refused(frame, reason):
    with pytest.raises(ProtocolViolation, match=reason):
        decode_handshake(frame)


def test_a_goodbye_gives_its_reason():
    assert decode_goodbye(arrived(encode_goodbye("two brokers have the id 3"))) == "two brokers have the id 3"


def test_a_reason_is_cut_and_has_no_line_breaks_when_it_is_logged():
    assert decode_goodbye(with_head(encode_text("a\nb" + "c" * 5000), Kind.GOODBYE)) == "a?b" + "c" * (
        MESSAGE_CHARACTERS_MAX - 3
    )


def test_a_goodbye_that_is_too_long_is_cut_before_it_is_sent():
    assert len(decode_frame(arrived(encode_goodbye("x" * 5000)))[1]) == 2 + MESSAGE_CHARACTERS_MAX
