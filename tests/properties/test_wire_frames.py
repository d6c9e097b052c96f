"""However the stream of bytes is cut into reads, the same frames come out of it."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from zurau.wire.kafka.frames import FrameReader

bodies = st.lists(st.binary(max_size=40) | st.integers(0, 70_000).map(lambda length: b"\xab" * length), max_size=6)
read_sizes = st.lists(st.integers(1, 30_000) | st.integers(1, 8), min_size=1, max_size=30)


def read_all(stream: bytes, sizes: list[int], scratch: bytearray) -> list[bytes]:
    reader = FrameReader(scratch, max_frame_bytes=100_000)
    frames: list[bytes] = []
    turn = 0
    while stream:
        buffer = reader.get_buffer()
        assert len(buffer) > 0
        count = min(len(buffer), len(stream), sizes[turn % len(sizes)])
        # Only long reads in the long run, so that a case ends.
        count = count if turn < 200 else min(len(buffer), len(stream))
        buffer[:count] = stream[:count]
        frames += map(bytes, reader.received(count))
        scratch[:] = b"\xee" * len(scratch)  # another connection uses it in between
        stream = stream[count:]
        turn += 1
    return frames


@given(bodies, read_sizes, st.sampled_from([5, 64, 4096]))
def test_any_chunking_of_the_stream_gives_the_same_frames(expected, sizes, scratch_bytes):
    stream = b"".join(struct.pack(">i", len(body)) + body for body in expected)
    assert read_all(stream, sizes, bytearray(scratch_bytes)) == expected
