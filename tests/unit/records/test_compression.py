from __future__ import annotations

import gzip
import struct

import cramjam
import pytest

from zurau.errors import CorruptData
from zurau.records.compression import Compression, compress, decompress

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
TEXT = b"one thought a slip, in order " * 5000


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("data", [b"", b"x", TEXT, bytes(range(256)) * 300])
def test_data_comes_out_as_it_went_in(codec, data):
    assert bytes(decompress(compress(data, codec), codec, len(data) + 1)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_exactly_the_limit_is_not_too_much(codec):
    assert bytes(decompress(compress(TEXT, codec), codec, len(TEXT))) == TEXT


@pytest.mark.parametrize("codec", CODECS)
def test_more_than_the_limit_is_refused(codec):
    with pytest.raises(CorruptData, match="more than"):
        decompress(compress(TEXT, codec), codec, len(TEXT) - 1)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_at_the_limit(codec):
    with pytest.raises(CorruptData):
        decompress(compress(bytes(50_000_000), codec), codec, 1_000_000)


@pytest.mark.parametrize("codec", CODECS)
def test_damaged_data_is_refused(codec):
    whole = compress(TEXT, codec)
    for damaged in (whole[: len(whole) // 2], b"\x07" + whole[1:], b"\xff" * 40):
        with pytest.raises(CorruptData):
            decompress(damaged, codec, 10_000_000)


def test_an_unknown_codec_is_refused():
    with pytest.raises(CorruptData, match="codec 6"):
        decompress(b"", 6, 100)
    with pytest.raises(ValueError, match="codec 6"):
        compress(b"", 6)


def test_snappy_is_written_in_blocks_as_the_java_client_does():
    packed = compress(TEXT, Compression.SNAPPY)
    assert packed[:16] == b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    (length,) = struct.unpack_from(">i", packed, 16)
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + length])) == TEXT[: 32 * 1024]


def test_a_bare_snappy_block_is_read_too():
    assert decompress(bytes(cramjam.snappy.compress_raw(TEXT)), Compression.SNAPPY, len(TEXT)) == TEXT


@pytest.mark.parametrize("tail", [b"\0\0", b"\0\0\0\0", b"\0\0\0\x09ab", b"\xff\xff\xff\xff"])
def test_snappy_blocks_that_run_over_the_end_are_refused(tail):
    with pytest.raises(CorruptData, match="snappy"):
        decompress(compress(b"x", Compression.SNAPPY) + tail, Compression.SNAPPY, 100)


def test_gzip_in_several_members_is_read_as_one():
    assert decompress(gzip.compress(b"one ") + gzip.compress(b"two"), Compression.GZIP, 100) == b"one two"


def test_lz4_blocks_do_not_depend_on_each_other():
    flags = compress(TEXT, Compression.LZ4)[4]
    assert flags & 0b0010_0000, "the Java client reads no other kind"
