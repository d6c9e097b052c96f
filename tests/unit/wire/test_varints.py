from __future__ import annotations

import pytest

from zurau.errors import ProtocolViolation
from zurau.wire.kafka.varints import decode_uvarint, encode_uvarint, skip_tags

KNOWN = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16384, "808001"),
    (2**32 - 1, "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "encoded"), KNOWN)
def test_varints_have_seven_bits_a_byte_least_significant_first(value, encoded):
    assert encode_uvarint(value).hex() == encoded
    assert decode_uvarint(memoryview(bytes.fromhex("ee" + encoded)), 1) == (value, 1 + len(encoded) // 2)


def test_a_varint_cut_short_runs_into_the_end_of_the_buffer():
    with pytest.raises(IndexError):
        decode_uvarint(memoryview(b"\x80\x80"), 0)


@pytest.mark.parametrize("encoded", [b"\xff\xff\xff\xff\x10", b"\x80\x80\x80\x80\x80"])
def test_a_varint_beyond_32_bits_is_a_violation(encoded):
    with pytest.raises(ProtocolViolation):
        decode_uvarint(memoryview(encoded + b"\0"), 0)


def test_skipping_tags_ends_behind_the_last_one():
    buffer = memoryview(b"\x01\x02ab\x05\x00rest")
    assert skip_tags(buffer, 0, len(buffer), 2) == 6
