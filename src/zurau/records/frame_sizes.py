"""How large the content of a compressed frame can be, read from the frame's own headers, before it is unpacked.

An lz4 frame is a row of blocks, none of which unpacks to more than the size that the frame's header names, so their
number is a bound. A zstd frame may name the size of its content. What is not in such a form is left to guessing.
"""

from __future__ import annotations

import struct

from zurau.ports import Buffer

_LZ4_MAGIC = 0x184D2204
_ZSTD_MAGIC = 0xFD2FB528
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
#: From the bits of the block descriptor.
_LZ4_BLOCK_BYTES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}
_LZ4_RAW_BLOCK = 1 << 31
_LZ4_INDEPENDENT = 0x20


def lz4_content_bytes(frame: Buffer) -> int | None:
    """No less than what the frame unpacks to; None if that cannot be told."""
    try:
        (magic,) = _U32.unpack_from(frame)
        flags, descriptor = frame[4], frame[5]
        if magic != _LZ4_MAGIC or descriptor >> 4 & 7 not in _LZ4_BLOCK_BYTES:
            return None
        has_checksums, has_size, has_dictionary = flags & 0x10, flags & 0x08, flags & 0x01
        if has_size:
            return int(_U64.unpack_from(frame, 6)[0])
        position = 7 + 4 * bool(has_dictionary)
        count = 0
        while size := _U32.unpack_from(frame, position)[0]:
            position += 4 + (size & ~_LZ4_RAW_BLOCK) + 4 * bool(has_checksums)
            count += 1
    except (struct.error, IndexError):
        return None
    is_last = position + 4 + 4 * bool(flags & 0x04) == len(frame)
    return count * _LZ4_BLOCK_BYTES[descriptor >> 4 & 7] if is_last else None


def is_lz4_for_java(frame: Buffer) -> bool:
    """Whether this is one frame and nothing else, of a kind that the Java client reads: of independent blocks."""
    try:
        (magic,) = _U32.unpack_from(frame)
        flags = frame[4]
        if magic != _LZ4_MAGIC or flags >> 6 != 1 or not flags & _LZ4_INDEPENDENT or flags & 0x03:
            return False
        has_checksums, has_size, has_content_checksum = flags & 0x10, flags & 0x08, flags & 0x04
        position = 7 + 8 * bool(has_size)
        while size := _U32.unpack_from(frame, position)[0]:
            position += 4 + (size & ~_LZ4_RAW_BLOCK) + 4 * bool(has_checksums)
    except (struct.error, IndexError):
        return False
    return position + 4 + 4 * bool(has_content_checksum) == len(frame)


def zstd_content_bytes(frame: Buffer) -> int | None:
    """What the frame says it unpacks to; None if it does not say."""
    try:
        (magic,) = _U32.unpack_from(frame)
        if magic != _ZSTD_MAGIC:
            return None
        descriptor = frame[4]
        is_single_segment = descriptor >> 5 & 1
        size_bytes = (is_single_segment, 2, 4, 8)[descriptor >> 6]
        position = 5 + (not is_single_segment) + (0, 1, 2, 4)[descriptor & 3]
        if not size_bytes or position + size_bytes > len(frame):
            return None
        size = int.from_bytes(frame[position : position + size_bytes], "little")
    except (struct.error, IndexError):
        return None
    return size + 256 if size_bytes == 2 else size
