from __future__ import annotations

import struct
import tracemalloc

import pytest

from zurau.errors import ProtocolViolation
from zurau.wire.kafka.frames import FrameReader

MIB = 1024 * 1024


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def feed(reader: FrameReader, data: bytes) -> list[bytes]:
    """As a socket would: no more at a time than there is room for."""
    frames: list[bytes] = []
    while data:
        buffer = reader.get_buffer()
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        frames += map(bytes, reader.received(count))
        data = data[count:]
    return frames


@pytest.fixture
def scratch():
    return bytearray(64)


@pytest.fixture
def reader(scratch):
    return FrameReader(scratch, max_frame_bytes=100 * MIB)


def test_several_frames_in_one_read_come_out_in_order(reader):
    assert feed(reader, framed(b"one") + framed(b"") + framed(b"three")) == [b"one", b"", b"three"]


def test_a_frame_that_comes_byte_by_byte_comes_out_whole(reader):
    data = framed(b"payload")
    assert [feed(reader, data[index : index + 1]) for index in range(len(data))] == [[]] * 10 + [[b"payload"]]


def test_a_size_split_between_two_reads_is_put_together(reader):
    first, second = framed(b"a" * 20), framed(b"b" * 5)
    assert feed(reader, first + second[:3]) == [b"a" * 20]
    assert feed(reader, second[3:]) == [b"b" * 5]


def test_a_frame_larger_than_the_scratch_buffer_is_read_into_its_own_memory(reader, scratch):
    body = bytes(range(256)) * 4096
    assert feed(reader, framed(body)[:100]) == []
    assert reader.get_buffer().obj is not scratch
    assert feed(reader, framed(body)[100:]) == [body]
    assert reader.get_buffer().obj is scratch


def test_frames_outlive_the_scratch_buffer_and_may_be_written_to(reader, scratch):
    buffer = reader.get_buffer()
    buffer[:8] = framed(b"abcd")
    (frame,) = reader.received(8)
    scratch[:] = bytes(64)
    frame[0:1] = b"A"
    assert frame.tobytes() == b"Abcd"


def test_connections_that_share_a_scratch_buffer_do_not_see_each_others_bytes(scratch):
    one, other = (FrameReader(scratch, max_frame_bytes=1000) for _ in range(2))
    data, noise = framed(b"mine"), framed(b"theirs" * 5)
    pieces = []
    for index in range(len(data)):
        pieces += feed(one, data[index : index + 1])
        feed(other, noise[index * 4 : index * 4 + 4])
    assert pieces == [b"mine"]


def test_memory_may_grow_while_the_buffer_is_still_being_looked_at(reader):
    """A transport holds on to the view that it has read into until `received` returns."""
    body = bytes(200_000)
    feed(reader, framed(body)[:50])
    views = []
    position = 46
    while position < len(body):
        view = reader.get_buffer()
        views.append(view)
        count = min(len(view), len(body) - position)
        view[:count] = body[position : position + count]
        frames = reader.received(count)
        position += count
    assert [bytes(frame) for frame in frames] == [body]


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_size_out_of_bounds_is_a_violation(scratch, size):
    reader = FrameReader(scratch, max_frame_bytes=1000)
    with pytest.raises(ProtocolViolation, match=f"a frame of {size} bytes"):
        feed(reader, struct.pack(">i", size))


def test_a_frame_of_the_largest_size_allowed_is_accepted(scratch):
    reader = FrameReader(scratch, max_frame_bytes=1000)
    assert feed(reader, framed(bytes(1000))) == [bytes(1000)]


def test_announcing_much_and_sending_nothing_costs_little(scratch):
    tracemalloc.start()
    try:
        readers = [FrameReader(scratch, max_frame_bytes=100 * MIB) for _ in range(100)]
        for reader in readers:
            feed(reader, struct.pack(">i", 100 * MIB) + b"?")
        current_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert current_bytes < 100 * 20 * 1024


def test_a_reader_says_how_much_memory_its_unfinished_frame_holds(reader):
    assert reader.held_bytes == 0
    feed(reader, struct.pack(">i", 100 * MIB) + b"?")
    assert 0 < reader.held_bytes <= 16 * 1024


def test_memory_stays_in_proportion_to_what_has_arrived(reader):
    feed(reader, struct.pack(">i", 100 * MIB) + bytes(MIB))
    tracemalloc.start()
    try:
        feed(reader, bytes(MIB))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 10 * MIB


def test_a_reader_with_a_limit_cuts_so_many_frames_and_keeps_the_rest_in_one_piece():
    reader = FrameReader(bytearray(1000), max_frame_bytes=1000, frames_max=2)
    sent = b"".join(struct.pack(">i", 3) + bytes((number,)) * 3 for number in range(5)) + b"\0\0\0\x09begin"
    reader.get_buffer()[: len(sent)] = sent
    cut = [reader.received(len(sent))]
    assert reader.held_bytes == len(sent) - 14
    while reader.has_more:
        cut.append(reader.more())
    assert [bytes(frame) for frames in cut for frame in frames] == [bytes((number,)) * 3 for number in range(5)]
    assert [len(frames) for frames in cut] == [2, 2, 1]
    reader.get_buffer()[:4] = b"ning"
    assert [bytes(frame) for frame in reader.received(4)] == [b"beginning"]


def test_the_memory_of_a_large_frame_grows_by_a_few_megabytes_at_a_time():
    reader = FrameReader(bytearray(1000), max_frame_bytes=1 << 30)
    reader.get_buffer()[:4] = struct.pack(">i", 50_000_000)
    reader.received(4)
    largest = 0
    while not (frames := reader.received(len(view := reader.get_buffer()))):
        largest = max(largest, len(view))
    assert largest <= 4 << 20
    assert len(frames[0]) == 50_000_000


def test_a_reader_that_is_told_to_forget_holds_nothing():
    reader = FrameReader(bytearray(1000), max_frame_bytes=1 << 30)
    reader.get_buffer()[:4] = struct.pack(">i", 50_000_000)
    reader.received(4)
    assert reader.held_bytes > 0
    reader.forget()
    assert reader.held_bytes == 0


def test_a_large_request_without_records_is_refused_when_it_has_begun_to_arrive(scratch):
    reader = FrameReader(scratch, max_frame_bytes=100 * MIB)
    with pytest.raises(ProtocolViolation, match="one without records"):
        feed(reader, struct.pack(">ih", 17 * MIB, 11) + bytes(20_000))
