"""The record batch: what producers send, logs store and consumers get, byte for byte the same.

Nouns: *batch* (61 bytes of header and then records, perhaps compressed), *header* (all that a broker needs to know
of a batch), *record* (key, value, headers, timestamp, at one offset).

Laws: a batch is walked over when it comes (`walk`) and opaque from then on; only base offset and leader epoch are
stamped in place, because the checksum does not cover them. Whatever is read from bytes is bounded by those bytes, and
decompressed data by a limit. Bytes that cannot be a batch raise `CorruptData`. Nothing here does I/O.
"""
