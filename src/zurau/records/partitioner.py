"""Which partition a key belongs to: as in the Java client, so that producers of any language agree."""

from __future__ import annotations

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """MurmurHash2 of 32 bits, signed as Java's is."""
    length = len(key)
    hashed = _SEED ^ length
    whole = length & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(key[start : start + 4], "little") * _MULTIPLIER & _MASK
        word ^= word >> 24
        hashed = (hashed * _MULTIPLIER & _MASK) ^ (word * _MULTIPLIER & _MASK)
    if whole < length:
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _MASK
    hashed ^= hashed >> 15
    return hashed - (1 << 32) if hashed >> 31 else hashed


def partition_for_key(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
