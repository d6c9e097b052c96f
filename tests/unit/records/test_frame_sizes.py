"""The size of what is in a frame, told by the frame."""

from __future__ import annotations

import random

import cramjam
import lz4.frame
import pytest

from zurau.records.compression import Compression, compress
from zurau.records.frame_sizes import lz4_content_bytes, zstd_content_bytes

CONTENTS = {"short": b"x", "repeated": b"a slip " * 30_000, "random": random.Random(1).randbytes(100_000)}
each_content = pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)


@each_content
def test_the_blocks_of_an_lz4_frame_bound_its_content(content):
    found = lz4_content_bytes(compress(content, Compression.LZ4))
    assert len(content) <= found < len(content) + (1 << 16)


@each_content
@pytest.mark.parametrize("block_size", [lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX4MB])
@pytest.mark.parametrize("with_checksums", [True, False])
def test_frames_of_other_writers_are_bounded_too(content, block_size, with_checksums):
    settings = {"block_size": block_size, "content_checksum": with_checksums, "block_checksum": with_checksums}
    assert lz4_content_bytes(lz4.frame.compress(content, store_size=False, **settings)) >= len(content)
    assert lz4_content_bytes(lz4.frame.compress(content, store_size=True, **settings)) == len(content)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65_791, 65_792, 100_000])
def test_a_zstd_frame_tells_the_size_of_its_content(size):
    assert zstd_content_bytes(bytes(cramjam.zstd.compress(bytes(size)))) in {size, None}
    assert zstd_content_bytes(compress(bytes(100_000), Compression.ZSTD)) == 100_000


def test_a_zstd_frame_that_does_not_tell_is_left_to_guessing():
    stream = cramjam.zstd.Compressor()
    stream.compress(b"abc")
    assert zstd_content_bytes(bytes(stream.finish())) is None


@pytest.mark.parametrize("size_of", [lz4_content_bytes, zstd_content_bytes])
def test_what_is_no_whole_frame_tells_nothing(size_of):
    codec = Compression.LZ4 if size_of is lz4_content_bytes else Compression.ZSTD
    frame = compress(b"a slip " * 100, codec)
    for nonsense in (b"", b"\0" * 20, frame[:4], frame[:5]):
        assert size_of(nonsense) is None
    assert lz4_content_bytes(compress(b"x", Compression.LZ4) * 2) is None
