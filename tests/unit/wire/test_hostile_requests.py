"""A request of a hundred megabytes may not become gigabytes of tiny things, nor keep the decoder busy for long.

Time is not measured here: a request is refused before more than a bounded number of things is made, which memory shows.
"""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from zurau.errors import ProtocolViolation
from zurau.settings import MIB
from zurau.wire.kafka.frames import REQUEST_ELEMENTS_MAX, decode_request

FRAME_BYTES = 100 * MIB
#: A hundred thousand small structs with their strings and lists take less than this.
MEMORY_BYTES_MAX = 32 * MIB


def request(api_key: int, version: int, body: bytes, *, flexible: bool) -> memoryview:
    header = struct.pack(">hhih", api_key, version, 1, -1) + (b"\0" if flexible else b"")
    return memoryview(header + body)


def repeated(element: bytes, room_bytes: int = FRAME_BYTES) -> bytes:
    """An old-style array that fills a frame."""
    count = room_bytes // len(element)
    return struct.pack(">i", count) + element * count


def peak_bytes_of_decoding(frame: memoryview) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolViolation, match="more elements than one message may hold"):
            decode_request(frame)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("api_key", "version", "body"),
    [
        (0, 8, struct.pack(">hhi", -1, 1, 1000) + repeated(b"\0\0" + bytes(4))),
        (3, 1, repeated(b"\0\0")),
        (9, 5, b"\0\1g" + repeated(b"\0\0" + bytes(4))),
        (9, 5, b"\0\1g" + struct.pack(">i", 1) + b"\0\1t" + repeated(bytes(4))),
        (11, 5, bytes(2 + 8 + 2) + b"\xff\xff" + bytes(2) + repeated(b"\0\0" + bytes(4))),
    ],
    ids=["produce", "metadata", "offset fetch", "offset fetch indexes", "join group"],
)
def test_a_hundred_megabytes_of_empty_elements_are_refused_in_bounded_memory(api_key, version, body):
    assert peak_bytes_of_decoding(request(api_key, version, body, flexible=False)) < MEMORY_BYTES_MAX


def test_elements_that_are_spread_over_nested_arrays_are_counted_together():
    topic = b"\0\1t" + repeated(bytes(4), room_bytes=400)
    topics = struct.pack(">i", REQUEST_ELEMENTS_MAX // 100) + topic * (REQUEST_ELEMENTS_MAX // 100)
    frame = request(9, 5, b"\0\1g" + topics, flexible=False)
    assert peak_bytes_of_decoding(frame) < MEMORY_BYTES_MAX


def test_unknown_tagged_fields_are_counted_too():
    tags = b"\x64" + b"\x63\0" * 100
    topics = bytes((0x80 | 10000 & 0x7F, 10000 >> 7)) + (b"\x01\x01" + tags) * 9999
    frame = request(0, 9, b"\0\0\1\0\0\0\1" + topics, flexible=True)
    assert peak_bytes_of_decoding(frame) < MEMORY_BYTES_MAX


def test_a_request_about_many_more_partitions_than_a_broker_should_have_is_fine():
    indexes = struct.pack(">i", 90_000) + bytes(4 * 90_000)
    _, decoded = decode_request(request(9, 5, b"\0\1g" + struct.pack(">i", 1) + b"\0\1t" + indexes, flexible=False))
    assert len(decoded.topics[0].partition_indexes) == 90_000
