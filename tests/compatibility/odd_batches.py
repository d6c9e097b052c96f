"""Batches that no ordinary producer sends, each with a name that says what is odd about it.

A kind is what is sent to a partition, one produce request after the other; the topic says which rules apply there.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from zurau.records.batch import HEADER, HEADER_BYTES, LENGTH_PREFIX_BYTES, seal
from zurau.records.builder import NewRecord, encode_record, write_varint
from zurau.records.compression import Compression, compress

NOW_MS = int(time.time() * 1000)
HOUR_MS = 3_600_000
INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)
INT32_MAX, INT32_MIN = 2**31 - 1, -(2**31)

#: Topics by name, with their settings.
TOPICS = {
    "plain": {},
    "sequences": {},
    "compacted": {"cleanup.policy": "compact"},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "recent": {"message.timestamp.before.max.ms": str(HOUR_MS)},
    "small": {"max.message.bytes": "1000"},
    "small-uncompressed": {"max.message.bytes": "1000", "compression.type": "uncompressed"},
    "uncompressed": {"compression.type": "uncompressed"},
    "gzip": {"compression.type": "gzip"},
    "zstd": {"compression.type": "zstd"},
}
#: Here the bytes that are stored are the broker's own, so only what they mean is compared.
PACKED_ANEW = ("small-uncompressed", "uncompressed", "gzip", "zstd")


@dataclass(frozen=True)
class Kind:
    batches: tuple[bytes | None, ...]
    topic: str = "plain"
    acks: int = -1
    version: int = 9


@dataclass
class Kinds:
    """A table of kinds under construction."""

    kinds: dict[str, Kind] = field(default_factory=dict)

    def add(self, name: str, *batches: bytes | None, **how: object) -> None:
        assert name not in self.kinds, f"two kinds are called {name}"
        self.kinds[name] = Kind(batches, **how)  # type: ignore[arg-type]


def varint(number: int, *, spare_bytes: int = 0) -> bytes:
    """A zigzag number, perhaps in more bytes than it needs."""
    output = bytearray()
    write_varint(output, number)
    for _ in range(spare_bytes):
        output[-1] |= 0x80
        output.append(0)
    return bytes(output)


def record(
    *,
    length: int | None = None,
    attributes: int = 0,
    timestamp: bytes = b"\0",
    offset: bytes = b"\0",
    key: bytes = varint(1) + b"k",
    value: bytes = varint(1) + b"v",
    headers: bytes = b"\0",
    prefix: bytes | None = None,
) -> bytes:
    """A record of parts that are encoded already. `length` is what it says of itself, `prefix` in which bytes."""
    body = bytes([attributes]) + timestamp + offset + key + value + headers
    return (varint(len(body) if length is None else length) if prefix is None else prefix) + body


def records(*some: NewRecord) -> bytes:
    payload = bytearray()
    for offset, each in enumerate(some):
        encode_record(payload, offset, each.timestamp - some[0].timestamp, each.key, each.value, each.headers)
    return bytes(payload)


def some_records(count: int, *, key: bytes | None = b"k", value: bytes = b"v") -> bytes:
    return records(*(NewRecord(key, value, timestamp=NOW_MS) for _ in range(count)))


def batch(payload: bytes | None = None, *, count: int = 1, crc: int | None = None, **odd: int) -> bytes:
    """A batch of one record, or of `count` that `payload` holds, with these odd values in its header."""
    payload = some_records(count) if payload is None else payload
    facts = {
        "base_offset": 0, "length": HEADER_BYTES - LENGTH_PREFIX_BYTES + len(payload), "leader_epoch": -1, "magic": 2,
        "crc": 0, "attributes": 0, "last_offset_delta": count - 1, "base_timestamp": NOW_MS, "max_timestamp": NOW_MS,
        "producer_id": -1, "producer_epoch": -1, "base_sequence": -1, "count": count,
    }  # fmt: skip
    assert odd.keys() <= facts.keys(), odd
    made = bytearray(HEADER.pack(*(facts | odd).values()) + payload)
    seal(made)
    if crc is not None:
        struct.pack_into(">I", made, 17, crc)
    return bytes(made)


def all_kinds() -> dict[str, Kind]:
    table = Kinds()
    for add in (
        _headers, _counts, _timestamps, _lengths, _records, _varints, _record_headers, _offsets, _codecs, _topics,
        _several, _producers, _sequences, _requests,
    ):  # fmt: skip
        add(table)
    return table.kinds


def _headers(table: Kinds) -> None:
    table.add("an ordinary batch", batch())
    for value in (1, -1, INT64_MAX):
        table.add(f"base offset {value}", batch(base_offset=value))
    for value in (0, 5, INT32_MAX, INT32_MIN):
        table.add(f"leader epoch {value}", batch(leader_epoch=value))
    for value in (0, 1, 3, 127, -1):
        table.add(f"magic {value}", batch(magic=value))
    for value in (0, 0xFFFFFFFF):
        table.add(f"checksum {value:#x}", batch(crc=value))
    for bit in range(3, 15):
        table.add(f"attribute bit {bit}", batch(attributes=1 << bit))
    table.add("attribute bit 15", batch(attributes=-(1 << 15)))
    for codec in (5, 6, 7):
        table.add(f"codec {codec}", batch(attributes=codec))


def _counts(table: Kinds) -> None:
    two = some_records(2)
    for value in (0, -1, 1, 3, INT32_MAX, INT32_MIN):
        table.add(f"two records, count {value}", _counted(two, value, 1))
    for value in (0, -1, 2, INT32_MAX, INT32_MIN):
        table.add(f"two records, last offset delta {value}", _counted(two, 2, value))
    for value in (1, 3, 100, INT32_MAX):
        table.add(f"two records, both saying {value}", _counted(two, value, value - 1))
    table.add("no records, both saying 0", _counted(b"", 0, -1))
    table.add("no records, both saying 1", _counted(b"", 1, 0))
    table.add("no records, count 0, last offset delta 0", _counted(b"", 0, 0))


def _counted(payload: bytes, count: int, last_offset_delta: int) -> bytes:
    made = bytearray(batch(payload))
    struct.pack_into(">i", made, 57, count)
    struct.pack_into(">i", made, 23, last_offset_delta)
    seal(made)
    return bytes(made)


def _timestamps(table: Kinds) -> None:
    moments = {
        "0": 0, "-1": -1, "-2": -2, "-100": -100, "ten years ago": NOW_MS - 87600 * HOUR_MS,
        "in half an hour": NOW_MS + HOUR_MS // 2, "in two hours": NOW_MS + 2 * HOUR_MS, "the largest": INT64_MAX,
        "the smallest": INT64_MIN,
    }  # fmt: skip
    for name, value in moments.items():
        table.add(f"timestamp {name}", batch(base_timestamp=value, max_timestamp=value))
        table.add(f"max timestamp {name}, which is wrong", batch(max_timestamp=value))
        table.add(f"base timestamp {name}, max timestamp now", batch(base_timestamp=value))
        table.add(
            f"append time, timestamp {name}", batch(base_timestamp=value, max_timestamp=value), topic="append-time"
        )
        table.add(f"recent only, timestamp {name}", batch(base_timestamp=value, max_timestamp=value), topic="recent")
    for name, delta in {
        "-1": -1, "1": 1, "two hours": 2 * HOUR_MS, "minus ten years": -87600 * HOUR_MS, "to -1": -1 - NOW_MS,
        "the largest": INT64_MAX, "the smallest": INT64_MIN, "to the largest": INT64_MAX - NOW_MS,
    }.items():  # fmt: skip
        table.add(f"timestamp delta {name}", batch(record(timestamp=varint(delta))))
        table.add(
            f"compacted, tombstone with timestamp delta {name}",
            batch(record(timestamp=varint(delta), value=varint(-1))),
            topic="compacted",
        )
        table.add(f"append time, timestamp delta {name}", batch(record(timestamp=varint(delta))), topic="append-time")
    late = records(*(NewRecord(b"k", b"v", timestamp=NOW_MS + ms) for ms in (0, 2 * HOUR_MS, 5, 3 * HOUR_MS)))
    table.add("the second and fourth of four records too late", batch(late, count=4))
    table.add("append time bit, timestamp now", batch(attributes=8))
    table.add("append time bit, timestamp -1", batch(attributes=8, base_timestamp=-1, max_timestamp=-1))
    table.add("append time, append time bit", batch(attributes=8), topic="append-time")


def _lengths(table: Kinds) -> None:
    whole = batch()
    for size in (0, 1, 11, 12, 16, 17, 60, 61, len(whole) - 1):
        table.add(f"cut to {size} bytes", whole[:size])
    table.add("no records at all", None)
    for value in (0, 1, 13, 14, 48, 49, -1, INT32_MIN, INT32_MAX):
        table.add(f"length field {value}", batch(length=value))
    right = len(whole) - LENGTH_PREFIX_BYTES
    table.add("length field one short", batch(length=right - 1))
    table.add("length field one long", batch(length=right + 1))
    for size in (1, 12, 16, 17, 60, 61):
        table.add(f"{size} zeros behind the batch", whole + bytes(size))
    table.add(
        "1001 bytes, where 1000 are allowed", batch(some_records(1, value=bytes(1001 - 61 - 9 - 2))), topic="small"
    )
    table.add(
        "1000 bytes, where 1000 are allowed", batch(some_records(1, value=bytes(1000 - 61 - 9 - 2))), topic="small"
    )
    table.add("claims 1 MB, where 1000 are allowed", batch(length=1_000_000), topic="small")


def _records(table: Kinds) -> None:
    right = len(record()) - 1
    for value in (0, 1, -1, right - 1, right + 1, 1000, INT32_MAX, INT32_MIN):
        table.add(f"record length {value}", batch(record(length=value)))
    for value in (1, 7, 0x80, 0xFF):
        table.add(f"record attributes {value:#x}", batch(record(attributes=value)))
    for part in ("key", "value"):
        for name, content in {
            "null": varint(-1), "empty": varint(0), "of length -2": varint(-2), "of length -3": varint(-3),
            "one byte long, claiming two": varint(2) + b"x", "claiming 1000": varint(1000) + b"x",
            "claiming the largest": varint(INT32_MAX) + b"x", "claiming the smallest": varint(INT32_MIN) + b"x",
        }.items():  # fmt: skip
            table.add(f"{part} {name}", batch(record(**{part: content})))  # type: ignore[arg-type]
    table.add("key and value null", batch(record(key=varint(-1), value=varint(-1))))
    for size in (1, 7, 100):
        table.add(f"{size} bytes behind the last record", batch(record() + bytes(size)))
        table.add(f"{size} random bytes as records", batch(bytes(range(137, 137 + size))))
        table.add(f"{size} zeros as records", batch(bytes(size)))
    table.add("the second record damaged", batch(record() + record(offset=varint(1), length=3), count=2))
    table.add("a record without its last byte", batch(record()[:-1]))
    table.add("a record of a length and nothing else", batch(varint(20)))


def _varints(table: Kinds) -> None:
    for spare in (1, 2, 3, 4, 5, 8, 9, 10):
        table.add(f"timestamp delta 0 in {spare + 1} bytes", batch(record(timestamp=varint(0, spare_bytes=spare))))
    for spare in (1, 2, 3, 4, 5, 9):
        table.add(f"offset delta 0 in {spare + 1} bytes", batch(record(offset=varint(0, spare_bytes=spare))))
        table.add(f"key length 1 in {spare + 1} bytes", batch(record(key=varint(1, spare_bytes=spare) + b"k")))
        table.add(f"value length 1 in {spare + 1} bytes", batch(record(value=varint(1, spare_bytes=spare) + b"v")))
        table.add(f"header count 0 in {spare + 1} bytes", batch(record(headers=varint(0, spare_bytes=spare))))
        length = len(record()) - 1
        table.add(f"record length in {spare + 1} bytes", batch(record(prefix=varint(length, spare_bytes=spare))))
    # More bits than the number has: what is above them is to be told, or not to be there.
    for top in (0x08, 0x10, 0x70, 0x7F):
        over = b"\x80\x80\x80\x80" + bytes([top])
        table.add(f"offset delta with {top:#x} as its fifth byte", batch(record(offset=over)))
        table.add(
            f"value length with {top:#x} as its fifth byte",
            batch(record(value=b"\x82\x80\x80\x80" + bytes([top]) + b"v")),
        )
    for top in (0x01, 0x02, 0x7E, 0x7F):
        over = b"\x80" * 9 + bytes([top])
        table.add(f"timestamp delta with {top:#x} as its tenth byte", batch(record(timestamp=over)))
    table.add("a number that does not end", batch(record(timestamp=b"\x80" * 20)))


def _record_headers(table: Kinds) -> None:
    one = varint(1) + b"h" + varint(1) + b"c"
    for name, headers in {
        "one": varint(1) + one, "two of one name": varint(2) + one + one,
        "an empty name": varint(1) + varint(0) + varint(1) + b"c",
        "an empty value": varint(1) + varint(1) + b"h" + varint(0),
        "a null value": varint(1) + varint(1) + b"h" + varint(-1),
        "a null name": varint(1) + varint(-1) + varint(1) + b"c",
        "a name of length -2": varint(1) + varint(-2) + varint(1) + b"c",
        "a value of length -2": varint(1) + varint(1) + b"h" + varint(-2),
        "count -1": varint(-1), "count 1 and none there": varint(1), "count 2 and one there": varint(2) + one,
        "count 0 and one there": varint(0) + one, "the largest count": varint(INT32_MAX) + one,
        "a name that is too long": varint(1) + varint(100) + b"h" + varint(0),
        "a value that is too long": varint(1) + varint(1) + b"h" + varint(100),
        "a name that is not UTF-8": varint(1) + varint(2) + b"\xff\xfe" + varint(0),
        "a name in UTF-8": varint(1) + varint(2) + "ü".encode() + varint(0),
        "a thousand": varint(1000) + one * 1000,
    }.items():  # fmt: skip
        table.add(f"headers: {name}", batch(record(headers=headers)))
        table.add(f"gzip, headers: {name}", batch(compress(record(headers=headers), Compression.GZIP), attributes=1))


def _offsets(table: Kinds) -> None:
    for name, deltas in {
        "all 0": (0, 0, 0), "descending": (2, 1, 0), "with a gap": (0, 2, 3), "from 1": (1, 2, 3),
        "negative": (-3, -2, -1),
        "with one twice": (0, 1, 1), "the last too large": (0, 1, 3), "one the largest": (0, INT32_MAX, 2),
    }.items():  # fmt: skip
        payload = b"".join(record(offset=varint(delta)) for delta in deltas)
        table.add(f"offset deltas {name}", batch(payload, count=3))
        for codec in (Compression.GZIP, Compression.ZSTD):
            packed = compress(payload, codec)
            table.add(f"{codec.name.lower()}, offset deltas {name}", batch(packed, count=3, attributes=codec))


def _codecs(table: Kinds) -> None:
    three = some_records(3)
    for codec in [codec for codec in Compression if codec]:
        name, packed = codec.name.lower(), compress(three, codec)

        def add(what: str, payload: bytes, count: int = 3, codec: int = codec, name: str = name, **how: object) -> None:
            table.add(f"{name}, {what}", batch(payload, count=count, attributes=codec), **how)

        add("three records", packed)
        add("four claimed", packed, count=4)
        add("two claimed", packed, count=2)
        add("the largest count claimed", packed, count=INT32_MAX)
        add("nothing packed", b"")
        add("records not packed", three)
        add("zeros", bytes(50))
        add("random bytes", bytes(range(100, 150)))
        add("cut by one byte", packed[:-1])
        add("cut by half", packed[: len(packed) // 2])
        add("damaged", packed[:-8] + bytes([packed[-8] ^ 0xFF]) + packed[-7:])
        add("a byte behind", packed + b"\0")
        add("records twice, count once", packed + packed)
        add("in two frames", compress(three[:12], codec) + compress(three[12:], codec))
        add("an empty frame", compress(b"", codec))
        add("a byte behind the records", compress(three + b"\0", codec))
        add("a keyless one to a compacted topic", compress(some_records(3, key=None), codec), topic="compacted")
        add("a key length of -2", compress(record(key=varint(-2)), codec), count=1)
        add("record length too long by one", compress(record(length=len(record())), codec), count=1)
        add("header count too large", compress(record(headers=varint(5)), codec), count=1)
        add("a late timestamp", compress(record(timestamp=varint(2 * HOUR_MS)), codec), count=1)
        add("100 kB of zeros", compress(some_records(1, value=bytes(100_000)), codec), count=1)
        add("through Produce 6", packed, version=6)
        add("through Produce 7", packed, version=7)
    for name, frame in _lz4_frames(three).items():
        table.add(f"lz4, {name}", batch(frame, count=3, attributes=Compression.LZ4))
    table.add("snappy, one bare block", batch(_bare_snappy(three), count=3, attributes=Compression.SNAPPY))


def _lz4_frames(data: bytes) -> dict[str, bytes]:
    import cramjam

    def packed(content: bytes, **how: bool) -> bytes:
        frame = cramjam.lz4.Compressor(level=1, **how)
        frame.compress(content)
        return bytes(frame.finish())

    plain = compress(data, Compression.LZ4)
    return {
        "a checksum of the content": packed(data, content_checksum=True, block_linked=False),
        "linked blocks": packed(data, content_checksum=False, block_linked=True),
        "another version": plain[:4] + bytes([plain[4] ^ 0xC0]) + plain[5:],
        "a dictionary": plain[:4] + bytes([plain[4] | 1]) + plain[5:6] + bytes(4) + plain[6:],
        "a wrong checksum of the frame's header": plain[:6] + bytes([plain[6] ^ 1]) + plain[7:],
        "a block size that is none": plain[:5] + bytes([0]) + plain[6:],
    }


def _bare_snappy(data: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress_raw(data))


def _topics(table: Kinds) -> None:
    keys = (None, b"k", None)
    keyless = records(*(NewRecord(key, b"v", timestamp=NOW_MS) for key in keys))
    table.add("compacted, the first and third without a key", batch(keyless, count=3), topic="compacted")
    table.add("compacted, an empty key", batch(record(key=varint(0))), topic="compacted")
    table.add("compacted, an ordinary tombstone", batch(record(value=varint(-1))), topic="compacted")
    both = records(NewRecord(None, b"", timestamp=NOW_MS), NewRecord(b"k", b"", timestamp=NOW_MS + 2 * HOUR_MS))
    table.add("compacted, one without a key and one too late", batch(both, count=2), topic="compacted")
    three = some_records(3)
    for topic in ("uncompressed", "gzip", "zstd"):
        for codec in Compression:
            packed = batch(compress(three, codec), count=3, attributes=codec)
            table.add(f"{codec.name.lower()} to a topic of {topic}", packed, topic=topic)
        table.add(f"a wrong max timestamp to a topic of {topic}", batch(max_timestamp=5), topic=topic)
        table.add(f"random bytes to a topic of {topic}", batch(bytes(range(100, 150))), topic=topic)
    large = some_records(1, value=bytes(5000))
    table.add("grows beyond max.message.bytes", batch(compress(large, 4), attributes=4), topic="small-uncompressed")
    table.add(
        "stays below max.message.bytes", batch(compress(three, 4), count=3, attributes=4), topic="small-uncompressed"
    )


def _several(table: Kinds) -> None:
    table.add("two batches", batch() + batch())
    table.add("a batch and half of one", batch() + batch()[:40])
    table.add("a batch and one of magic 1", batch() + batch(magic=1))
    table.add("a batch and one with a wrong checksum", batch() + batch(crc=1))
    table.add("the same batch again", batch(), batch())
    table.add("a refused batch and then a sound one", batch(crc=1), batch())


def _producers(table: Kinds) -> None:
    for name, facts in {
        "id -2": {"producer_id": -2}, "id without epoch": {"producer_id": 5, "base_sequence": 0},
        "id without sequence": {"producer_id": 5, "producer_epoch": 0},
        "sequence -2": {"producer_id": 5, "producer_epoch": 0, "base_sequence": -2},
        "epoch -2": {"producer_id": 5, "producer_epoch": -2, "base_sequence": 0},
        "epoch and sequence without id": {"producer_epoch": 3, "base_sequence": 7},
        "the smallest id": {"producer_id": INT64_MIN, "producer_epoch": 0, "base_sequence": 0},
        "the largest of everything": {"producer_id": INT64_MAX, "producer_epoch": 32767, "base_sequence": INT32_MAX},
        "first sequence 5": {"producer_id": 6, "producer_epoch": 0, "base_sequence": 5},
        "first epoch 9": {"producer_id": 7, "producer_epoch": 9, "base_sequence": 0},
    }.items():  # fmt: skip
        table.add(f"producer: {name}", batch(**facts), topic="sequences")


def _sequences(table: Kinds) -> None:
    producer_id = 1000

    def sent(*steps: tuple[int, int], count: int = 1) -> Iterator[bytes]:
        for epoch, sequence in steps:
            yield batch(count=count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)

    for name, steps in {
        "in order": [(0, 0), (0, 1), (0, 2)], "the last repeated": [(0, 0), (0, 1), (0, 1)],
        "the first repeated": [(0, 0), (0, 1), (0, 0)], "a gap": [(0, 0), (0, 2)],
        "repeated after six": [(0, n) for n in range(6)] + [(0, 0)],
        "repeated after five": [(0, n) for n in range(5)] + [(0, 0)],
        "an older epoch": [(5, 0), (4, 0)], "a newer epoch from 0": [(0, 0), (1, 0)],
        "a newer epoch from 1": [(0, 0), (1, 1)],
        "round the end": [(0, INT32_MAX), (0, 0), (0, 1)], "past the end": [(0, INT32_MAX), (0, 1)],
        "backwards": [(0, 10), (0, 9)],
    }.items():  # fmt: skip
        producer_id += 1
        table.add(f"sequences: {name}", *sent(*steps), topic="sequences")
    producer_id += 1
    table.add("sequences: three at a time round the end", *sent((0, INT32_MAX - 1), (0, 1), count=3), topic="sequences")
    producer_id += 1
    overlap = [*sent((0, 0), count=3), *sent((0, 0), count=2)]
    table.add("sequences: repeated with fewer records", *overlap, topic="sequences")


def _requests(table: Kinds) -> None:
    for acks in (0, 1, 2, -2, 32767, -32768):
        table.add(f"acks {acks}", batch(), acks=acks)
        table.add(f"acks {acks}, a wrong checksum", batch(crc=1), acks=acks)
    for version in (3, 4, 5, 6, 7, 8, 10, 11):
        table.add(f"Produce {version}", batch(), version=version)
