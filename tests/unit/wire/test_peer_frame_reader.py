"""Frames of other brokers as they arrive: little before the handshake, anything afterwards."""

from __future__ import annotations

import pytest

from zurau.errors import ProtocolViolation
from zurau.settings import MIB
from zurau.wire.peer.frame_reader import HANDSHAKE_BYTES_MAX, HEAD_BYTES_MAX, PeerFrameReader
from zurau.wire.peer.frames import HEADER_BYTES, Kind, encode_frame

MAX_BYTES = 100 * MIB


def frame(length: int, head: bytes = b"") -> bytes:
    return b"".join(encode_frame(Kind.SESSION_RESPONSE, [head], [bytes(length - HEADER_BYTES - len(head))]))


def feed(reader: PeerFrameReader, data: bytes) -> list[int]:
    """The sizes of the frames that are complete after these bytes."""
    sizes = []
    while data:
        buffer = reader.get_buffer()
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        sizes += [len(each) for each in reader.received(count)]
        data = data[count:]
    return sizes


@pytest.fixture
def reader() -> PeerFrameReader:
    return PeerFrameReader(bytearray(1000), MAX_BYTES)


@pytest.fixture
def greeted(reader) -> PeerFrameReader:
    reader.handshake_done()
    return reader


def test_the_largest_handshake_is_let_in(reader):
    assert feed(reader, frame(HANDSHAKE_BYTES_MAX)) == [HANDSHAKE_BYTES_MAX]


def test_a_frame_that_is_too_large_for_a_handshake_is_refused_by_its_size(reader):
    with pytest.raises(ProtocolViolation, match="the largest allowed"):
        feed(reader, frame(HANDSHAKE_BYTES_MAX + 1)[:4])


def test_what_comes_behind_the_handshake_waits_until_that_is_understood(reader):
    assert feed(reader, frame(20) + frame(30) + frame(2 * MIB)[:500]) == [20]
    assert [len(each) for each in reader.handshake_done()] == [30]
    assert reader.arriving_bytes == 2 * MIB


def test_the_size_of_a_frame_is_known_while_it_arrives(greeted):
    whole = frame(5000)
    assert feed(greeted, whole[:4999]) == []
    assert greeted.arriving_bytes == 5000
    assert feed(greeted, whole[4999:]) == [5000]
    assert greeted.arriving_bytes == 0


def test_a_frame_gets_its_memory_at_once_when_its_head_is_right(greeted):
    whole = frame(4 * MIB, head=b"x" * 2000)
    feed(greeted, whole[:1000])
    assert greeted.held_bytes < 20_000
    feed(greeted, whole[1000:100_000])
    assert greeted.held_bytes == 4 * MIB
    assert feed(greeted, whole[100_000:]) == [4 * MIB]


def test_a_damaged_head_is_noticed_before_the_records_have_come(greeted):
    damaged = bytearray(frame(10 * MIB, head=b"x" * 100))
    damaged[50] ^= 1
    with pytest.raises(ProtocolViolation, match="checksum"):
        feed(greeted, damaged[:200])


def test_a_head_that_has_not_come_whole_is_checked_when_it_has(greeted):
    damaged = bytearray(frame(10 * MIB, head=b"x" * 5000))
    damaged[50] ^= 1
    assert feed(greeted, damaged[:4000]) == []
    with pytest.raises(ProtocolViolation, match="checksum"):
        feed(greeted, damaged[4000:6000])


def test_a_damaged_size_is_noticed_before_anything_is_waited_for(greeted):
    damaged = bytearray(frame(200))
    damaged[1] ^= 1
    with pytest.raises(ProtocolViolation, match="checksum"):
        feed(greeted, damaged)


def test_a_head_that_would_take_long_to_decode_is_refused_when_it_is_announced(greeted):
    announced = bytearray(frame(MAX_BYTES)[:100])
    announced[12:16] = (HEAD_BYTES_MAX + 1).to_bytes(4, "big")
    with pytest.raises(ProtocolViolation, match="a head of"):
        feed(greeted, announced)


def test_what_is_no_frame_of_a_broker_is_refused_when_it_begins(greeted):
    kafka_request = (5000).to_bytes(4, "big") + b"\0\3\0\x0c\0\0\0\7" + bytes(100)
    with pytest.raises(ProtocolViolation, match="connected to the peer port"):
        feed(greeted, kafka_request)
