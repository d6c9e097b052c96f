"""The five codecs that Kafka's producers may use, each framed as the Java client frames it.

gzip and zstd are their usual files. lz4 is the frame format with independent blocks, the only kind that Java reads.
snappy is split into blocks behind a small header (the "xerial" stream of the Java library); some producers send one
bare snappy block instead, so both are read.

Whoever sends a batch chooses how far it unpacks, so the output is bounded before it is made.

The library is imported when it is first needed: it takes two megabytes, and many a broker never opens a batch.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum

from zurau.errors import CorruptData
from zurau.ports import Buffer
from zurau.records.buffers import new_buffer
from zurau.records.frame_sizes import lz4_content_bytes, zstd_content_bytes


class TooLarge(CorruptData):
    """The content is larger than allowed, or damaged so that this cannot be told."""


class Compression(IntEnum):
    """Numbers as in a batch's attributes; lower-case names are those of the `compression.type` setting."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_GZIP_WINDOW = 31
_ZSTD_LEVEL = 3
_LZ4_LEVEL = 1
_SNAPPY_BLOCK_BYTES = 32 * 1024
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_BLOCK_LENGTH = struct.Struct(">i")
#: What to expect of a frame that does not say how large its content is.
_USUAL_RATIO = 8
_ROOM_BYTES_MIN = 4096
_GZIP_PIECE_BYTES = 1 << 20


def compress(data: Buffer, codec: int) -> bytes:
    """`data` as the Java client would compress it."""
    match codec:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            return zlib.compress(data, wbits=_GZIP_WINDOW)
        case Compression.SNAPPY:
            return _compress_xerial(memoryview(data))
    import cramjam

    match codec:
        case Compression.LZ4:
            frame = cramjam.lz4.Compressor(level=_LZ4_LEVEL, content_checksum=False, block_linked=False)
            frame.compress(bytes(data))
            return bytes(frame.finish())
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))
    raise ValueError(f"there is no compression codec {codec}")


def decompress(data: Buffer, codec: int, limit_bytes: int) -> Buffer:
    """The content of `data`. Raises `CorruptData` if it is damaged, `TooLarge` if it is over `limit_bytes`."""
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return _decompress_gzip(data, limit_bytes)
        case Compression.SNAPPY:
            return _decompress_snappy(memoryview(data), limit_bytes)
    import cramjam

    match codec:
        case Compression.LZ4:
            return _decompress_frame(cramjam.lz4.decompress_into, data, lz4_content_bytes(data), limit_bytes)
        case Compression.ZSTD:
            return _decompress_frame(cramjam.zstd.decompress_into, data, zstd_content_bytes(data), limit_bytes)
    raise CorruptData(f"there is no compression codec {codec}")


def likely_bytes(data: Buffer, codec: int) -> int:
    """What `data` will probably unpack to, by what it says of itself. Whoever sent it may be lying."""
    told: int | None = None
    match codec:
        case Compression.NONE:
            return len(data)
        case Compression.GZIP:
            told = int.from_bytes(data[-4:], "little")  # true of one member of less than 4 GiB
        case Compression.ZSTD:
            told = zstd_content_bytes(data)
    return max(told or _USUAL_RATIO * len(data), len(data))


def _compress_xerial(data: memoryview) -> bytes:
    import cramjam

    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _SNAPPY_BLOCK_BYTES]))
        parts += _BLOCK_LENGTH.pack(len(block)), block
    return b"".join(parts)


def _decompress_gzip(data: Buffer, limit_bytes: int) -> Buffer:
    """In pieces, so that other threads get their turn: joining all of it at the end would stop them."""
    pieces: list[bytes] = []
    size = 0
    rest: Buffer = data
    while rest:
        stream = zlib.decompressobj(_GZIP_WINDOW)
        while not stream.eof:
            try:
                piece = stream.decompress(rest, _GZIP_PIECE_BYTES)
            except zlib.error as error:
                raise CorruptData(f"gzip: {error}") from None
            rest = stream.unconsumed_tail
            pieces.append(piece)
            size += len(piece)
            if size > limit_bytes:
                raise _too_large(limit_bytes)
            if not (piece or rest or stream.eof):
                raise CorruptData("gzip: the data ends too early")
        rest = stream.unused_data
    return pieces[0] if len(pieces) == 1 else _joined(pieces, size)


def _joined(pieces: list[bytes], size: int) -> memoryview:
    """One buffer in their place."""
    content = memoryview(new_buffer(size))
    end = size
    while pieces:
        piece = pieces.pop()
        content[end - len(piece) : end] = piece
        end -= len(piece)
    return content


def _decompress_snappy(data: memoryview, limit_bytes: int) -> bytes:
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _decompress_block(data, limit_bytes)
    parts = []
    position = len(_XERIAL_HEADER)
    left = limit_bytes
    while position < len(data):
        if data[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:  # one stream behind the other
            position += len(_XERIAL_HEADER)
            continue
        if position + _BLOCK_LENGTH.size > len(data):
            raise CorruptData("snappy: the data ends too early")
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += _BLOCK_LENGTH.size
        if not 0 < length <= len(data) - position:
            raise CorruptData(f"snappy: a block of {length} bytes where {len(data) - position} are left")
        parts.append(_decompress_block(data[position : position + length], left))
        left -= len(parts[-1])
        position += length
    return b"".join(parts)


def _decompress_block(block: memoryview, limit_bytes: int) -> bytes:
    import cramjam

    try:
        length = cramjam.snappy.decompress_raw_len(block)
        if length > limit_bytes:
            raise _too_large(limit_bytes)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CorruptData(f"snappy: {error}") from None


def _decompress_frame(
    decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, expected_bytes: int | None, limit_bytes: int
) -> memoryview:
    """Into a buffer of the size that the frame tells; if it tells none, into one that is made larger until it fits."""
    import cramjam

    room = min(max(expected_bytes or _USUAL_RATIO * len(data), _ROOM_BYTES_MIN), limit_bytes)
    while True:
        output = new_buffer(room)
        try:
            return memoryview(output)[: decompress_into(data, output)]
        except cramjam.DecompressionError as error:
            # "Too small" and "damaged" come as the same error; only at the limit does it matter which.
            if room == limit_bytes:
                raise TooLarge(f"damaged, or unpacks to more than {limit_bytes} bytes: {error}") from None
        room = min(4 * room, limit_bytes)


def _too_large(limit_bytes: int) -> TooLarge:
    return TooLarge(f"unpacks to more than {limit_bytes} bytes")
