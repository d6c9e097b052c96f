"""Batches of a few kilobytes that unpack to a hundred megabytes, or hold millions of records, many at once.

All are what Kafka takes, or looked so at first sight. Whoever sends them waits; nobody else does.
"""

from __future__ import annotations

import threading
import time

import pytest
from attack import WAIT_ALLOWED_S, Attacker, produce_request, wait_until

from zurau.records.batch import HEADER, HEADER_BYTES, LENGTH_PREFIX_BYTES, seal
from zurau.records.builder import write_varint
from zurau.records.compression import Compression, compress
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

#: What each codec makes a hundred megabytes, or as much as fits into a megabyte of batch.
UNPACKED_BYTES = {
    Compression.GZIP: 100_000_000,
    Compression.SNAPPY: 20_000_000,
    Compression.LZ4: 100_000_000,
    Compression.ZSTD: 100_000_000,
}
SENDERS = 4
BOMBS_EACH = 4
#: The broker by itself, one bomb in each lane, and what is sent.
MEMORY_ALLOWED_MB = 600
PRODUCE_VERSION = 9
LIST_OFFSETS_VERSION = 7


def bomb(payload: bytes, codec: int, count: int = 1) -> bytes:
    """A batch of `count` records in this payload."""
    packed = compress(payload, codec)
    now_ms = int(time.time() * 1000)
    size = HEADER_BYTES - LENGTH_PREFIX_BYTES + len(packed)
    batch = bytearray(HEADER.pack(0, size, -1, 2, 0, codec, count - 1, now_ms, now_ms, -1, -1, -1, count) + packed)
    seal(batch)
    return bytes(batch)


def one_record(value_bytes: int) -> bytes:
    """A record with a key and a value of zeros."""
    return _record(b"\x02k" + _varint(value_bytes) + bytes(value_bytes) + b"\0")


def many_headers(header_count: int) -> bytes:
    """A record with a key, no value, and headers without a name or a value: two bytes each."""
    return _record(b"\x02k\x01" + _varint(header_count) + bytes(2 * header_count))


def tiny_records(count: int) -> bytes:
    """Tombstones of one key, with offsets as they should be."""
    return b"".join(
        bytes([2 * (6 + len(delta)), 0, 0]) + delta + b"\x02k\x01\0" for delta in map(_varint, range(count))
    )


def _record(rest: bytes) -> bytes:
    return _varint(3 + len(rest)) + b"\0\0\0" + rest


def _varint(number: int) -> bytes:
    output = bytearray()
    write_varint(output, number)
    return bytes(output)


def throw(broker, topic: str, batch: bytes, times: int) -> list[int]:
    """Several connections send the batch several times each, without waiting; returns the error codes."""
    codes: list[int] = []

    def send() -> None:
        attacker = Attacker(broker.port)
        sent = [attacker.send(produce_request(topic, batch), PRODUCE_VERSION) for _ in range(times)]
        codes.extend(attacker.receive(header).responses[0].partition_responses[0].error_code for header in sent)
        attacker.leave()

    senders = [threading.Thread(target=send) for _ in range(SENDERS)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    return codes


@pytest.fixture
def attacker(broker, connect) -> Attacker:
    attacker = connect(broker)
    attacker.create_topic("compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="0", segment_ms="1000")
    return attacker


@pytest.mark.parametrize("codec", UNPACKED_BYTES, ids=lambda codec: codec.name.lower())
def test_bombs_hold_up_nobody_else(broker, attacker, watch, codec, record_property):
    batch = bomb(one_record(UNPACKED_BYTES[codec]), codec)
    bystander = watch(broker)
    # Unpacking gzip takes a second each.
    codes = throw(broker, "compacted", batch, 1 if codec == Compression.GZIP else BOMBS_EACH)
    record_property("most memory, MB", round(peak_mb(broker)))
    assert set(codes) == {ErrorCode.NONE}
    assert bystander.finish() < WAIT_ALLOWED_S
    assert peak_mb(broker) < MEMORY_ALLOWED_MB


def test_a_record_of_millions_of_headers_holds_up_nobody_else(broker, attacker, watch):
    batch = bomb(many_headers(50_000_000), Compression.ZSTD)
    bystander = watch(broker)
    assert set(throw(broker, "compacted", batch, BOMBS_EACH)) == {ErrorCode.NONE}
    assert bystander.finish() < WAIT_ALLOWED_S
    assert peak_mb(broker) < MEMORY_ALLOWED_MB


def test_millions_of_tiny_records_hold_up_nobody_else(broker, connect, watch):
    connect(broker).create_topic("compacted", cleanup_policy="compact", max_message_bytes="20000000")
    batch = bomb(tiny_records(1_000_000), Compression.ZSTD, 1_000_000)
    bystander = watch(broker)
    assert set(throw(broker, "compacted", batch, BOMBS_EACH)) == {ErrorCode.NONE}
    assert bystander.finish() < WAIT_ALLOWED_S
    assert peak_mb(broker) < MEMORY_ALLOWED_MB


def test_records_that_are_all_the_same_are_refused_at_once(broker, attacker, watch):
    same = bytes([14, 0, 0, 0, 2]) + b"k\x01\0"
    batch = bomb(same * 12_000_000, Compression.ZSTD, 12_000_000)
    bystander = watch(broker)
    assert set(throw(broker, "compacted", batch, BOMBS_EACH)) == {ErrorCode.INVALID_RECORD}
    assert bystander.finish() < WAIT_ALLOWED_S


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "lz4"])
def test_what_is_packed_anew_holds_up_nobody_else_and_obeys_the_limit(broker, connect, watch, wanted):
    attacker = connect(broker)
    attacker.create_topic("anew", compression_type=wanted)
    batch = bomb(one_record(90_000_000), Compression.ZSTD)
    bystander = watch(broker)
    codes = set(throw(broker, "anew", batch, 1))
    assert codes == {ErrorCode.MESSAGE_TOO_LARGE if wanted == "uncompressed" else ErrorCode.NONE}
    stored = attacker.fetch("anew", 0).records
    assert len(stored or b"") < 5_000_000
    assert bystander.finish() < WAIT_ALLOWED_S


def test_ordinary_large_batches_pass_bombs_by(broker, attacker, watch, connect):
    """They unpack to a megabyte, and need a worker too."""
    batch = bomb(one_record(100_000_000), Compression.ZSTD)
    thrower = threading.Thread(target=throw, args=(broker, "compacted", batch, BOMBS_EACH))
    other = connect(broker)
    other.create_topic("ordinary")
    thrower.start()
    longest_s = 0.0
    while thrower.is_alive():
        began = time.monotonic()
        assert other.produce("ordinary", bomb(one_record(1_000_000), Compression.LZ4)).error_code == ErrorCode.NONE
        longest_s = max(longest_s, time.monotonic() - began)
    thrower.join()
    assert longest_s < WAIT_ALLOWED_S


def test_searching_a_bomb_by_time_holds_up_nobody_else_and_a_stop_is_in_good_order(broker, attacker, watch, connect):
    assert attacker.produce("compacted", bomb(many_headers(50_000_000), Compression.ZSTD)).error_code == ErrorCode.NONE
    wanted = ListOffsetsPartition(partition_index=0, timestamp=1)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic("compacted", [wanted])])
    bystander = watch(broker)
    for _ in range(8):
        searcher = connect(broker)
        for _ in range(50):
            searcher.send(request, LIST_OFFSETS_VERSION)
    bystander.join(2.0)
    assert bystander.finish() < WAIT_ALLOWED_S
    began = time.monotonic()
    broker.stop()
    assert time.monotonic() - began < WAIT_ALLOWED_S
    assert "Traceback" not in broker.log.read_text()


def test_a_topic_is_deleted_while_its_bombs_are_unpacked(broker, attacker, connect):
    from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest

    batch = bomb(one_record(100_000_000), Compression.GZIP)
    sent = [attacker.send(produce_request("compacted", batch), PRODUCE_VERSION) for _ in range(5)]
    other = connect(broker)
    deleted = other.ask(DeleteTopicsRequest(topic_names=["compacted"], timeout_ms=10_000), 4)
    assert deleted.responses[0].error_code == ErrorCode.NONE
    codes = {attacker.receive(header).responses[0].partition_responses[0].error_code for header in sent}
    assert codes <= {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    other.create_topic("compacted")
    assert other.produce("compacted", bomb(one_record(10), Compression.ZSTD)).error_code == ErrorCode.NONE
    wait_until(lambda: other.fetch("compacted", 0).high_watermark == 1, "one record")


def peak_mb(broker) -> float:
    """The most memory that the broker ever held."""
    from pathlib import Path

    status = Path(f"/proc/{broker.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1000


def test_bombs_are_compacted_and_nobody_else_notices(start_broker, connect, watch, record_property):
    broker = start_broker(log_cleaner_backoff_ms=100, internal_segment_bytes=10_000)
    attacker = connect(broker)
    compacting = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0"}
    attacker.create_topic("keys", max_message_bytes="20000000", **compacting)
    bystander = watch(broker)
    many = bomb(tiny_records(200_000), Compression.ZSTD, 200_000)
    for batch in (bomb(many_headers(40_000_000), Compression.ZSTD), many, bomb(one_record(90_000_000), 4), many):
        assert attacker.produce("keys", batch).error_code == ErrorCode.NONE
    wait_until(lambda: "keys-0: compacted" in broker.log.read_text(), "a compaction", patience_s=60)
    assert bystander.finish() < WAIT_ALLOWED_S
    record_property("most memory, MB", round(peak_mb(broker)))
    assert peak_mb(broker) < MEMORY_ALLOWED_MB
