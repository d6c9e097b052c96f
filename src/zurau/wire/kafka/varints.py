"""Unsigned variable-length integers, and what generated codecs call when the common case does not apply.

Seven bits a byte, least significant first; the top bit says that more follow. The flexible versions write every
length as one of these, plus one, so that zero means null. Nearly all fit in one byte, which generated code handles
by itself; these functions are for the rest.
"""

from __future__ import annotations

from zurau.errors import ProtocolViolation

ONE_BYTE = tuple(bytes((value,)) for value in range(128))

#: The most bytes that a string may have: its length was an int16 before flexible versions, and still has to fit.
STRING_BYTES_MAX = 32767


def encode_uvarint(value: int) -> bytes:
    if value < 128:
        return ONE_BYTE[value]
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_uvarint(buffer: memoryview, position: int) -> tuple[int, int]:
    """The value at `position`, and where it ends. Raises IndexError at the end of the buffer."""
    first = buffer[position]
    if first < 128:
        return first, position + 1
    return continue_uvarint(buffer, position + 1, first)


def continue_uvarint(buffer: memoryview, position: int, first: int) -> tuple[int, int]:
    """The value whose `first` byte, already read, said that more follow; and where it ends."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise ProtocolViolation("a varint is longer than 32 bits")


def continue_string_length(buffer: memoryview, position: int, first: int) -> tuple[int, int]:
    """As `continue_uvarint`, for the length (plus one) of a compact string."""
    length, position = continue_uvarint(buffer, position, first)
    if length > STRING_BYTES_MAX + 1:
        raise ProtocolViolation(f"a string of {length - 1} bytes; the longest allowed has {STRING_BYTES_MAX}")
    return length, position


def decode_tag(buffer: memoryview, position: int, end: int) -> tuple[int, int, int]:
    """The number of the tagged field at `position`, where its value starts, and where that ends."""
    number, position = decode_uvarint(buffer, position)
    size, position = decode_uvarint(buffer, position)
    if position + size > end:
        raise ProtocolViolation(f"tagged field {number} runs past the end")
    return number, position, position + size


def check_tag_count(first: int) -> None:
    """Refuse a count of tagged fields whose `first` byte says that it has more: no struct has had ten of them yet."""
    if first > 127:
        raise ProtocolViolation("more than 127 tagged fields in one struct")


def skip_tags(buffer: memoryview, position: int, end: int, count: int) -> int:
    """Pass over tagged fields, none of which we know."""
    check_tag_count(count)
    for _ in range(count):
        _, _, position = decode_tag(buffer, position, end)
    return position
