from __future__ import annotations

import random

import pytest

from zurau.errors import Refused
from zurau.log.settings import LogSettings
from zurau.partition.admission import Admission, InvalidRecords, read_header
from zurau.records.batch import check_crc, parse_header, seal
from zurau.records.builder import NewRecord, build_batch, encode_record, pack_batch
from zurau.records.compression import Compression, TooLarge
from zurau.settings import INT64_MAX
from zurau.wire.kafka.error_codes import ErrorCode

NOW_MS = 1_767_657_600_000
HOUR_MS = 3_600_000
LIMIT = 1 << 20


def make_batch(*, timestamp: int = NOW_MS, key: bytes | None = b"k", **facts) -> memoryview:
    return memoryview(build_batch([NewRecord(key, b"v", timestamp=timestamp)], **facts))


def examine(batch: memoryview, **settings) -> memoryview:
    """The batch as it is stored by a topic with these settings."""
    admission = Admission(LogSettings(**settings))
    admission.check(batch, parse_header(batch))
    return admission.examine(batch, parse_header(batch), NOW_MS, LIMIT)[0]


def refusal(batch: memoryview, **settings) -> ErrorCode | None:
    """The code with which a batch is refused, or None if it may enter."""
    try:
        examine(batch, **settings)
    except Refused as refused:
        return ErrorCode(refused.code)
    return None


def changed(position: int, content: bytes) -> memoryview:
    """A batch with other bytes in its header and a checksum that covers them."""
    batch = make_batch()
    batch[position : position + len(content)] = content
    seal(batch)
    return batch


def test_a_sound_batch_may_enter():
    assert refusal(make_batch()) is None


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        (changed(16, b"\x01"), ErrorCode.INVALID_RECORD),
        (changed(22, b"\x05"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (changed(22, b"\x20"), ErrorCode.INVALID_RECORD),
        (changed(22, b"\x10"), ErrorCode.INVALID_TXN_STATE),
        (changed(57, b"\0\0\0\0"), ErrorCode.INVALID_RECORD),
        (changed(57, b"\xff\xff\xff\xff"), ErrorCode.INVALID_RECORD),
        (changed(23, b"\0\0\0\x05"), ErrorCode.INVALID_RECORD),
        (make_batch(producer_id=1), ErrorCode.INVALID_RECORD),
        (make_batch(producer_id=1, producer_epoch=0), ErrorCode.INVALID_RECORD),
        (make_batch(producer_id=1, base_sequence=0), ErrorCode.INVALID_PRODUCER_EPOCH),
        (make_batch(base_offset=7), ErrorCode.INVALID_RECORD),
    ],
    ids=[
        "magic",
        "codec",
        "control",
        "transaction",
        "no records",
        "negative count",
        "offsets",
        "neither",
        "sequence",
        "epoch",
        "base offset",
    ],
)
def test_what_producers_may_not_send_is_refused(batch, code):
    assert refusal(batch) == code


@pytest.mark.parametrize("length", [-1, 1])
def test_a_batch_must_fill_its_bytes(length):
    batch = bytes(make_batch())
    sent = batch[:length] if length < 0 else batch + bytes(length)
    assert refusal(memoryview(bytearray(sent))) == ErrorCode.INVALID_RECORD


def test_the_size_is_looked_at_before_the_checksum():
    damaged = make_batch()
    damaged[-1] ^= 1
    assert refusal(damaged, max_message_bytes=10) == ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(damaged) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("later_ms", "code"), [(HOUR_MS, None), (HOUR_MS + 1, ErrorCode.INVALID_TIMESTAMP), (-1000 * HOUR_MS, None)]
)
def test_timestamps_may_be_old_but_not_far_ahead(later_ms, code):
    assert refusal(make_batch(timestamp=NOW_MS + later_ms)) == code


def test_a_topic_may_refuse_old_timestamps():
    batch = make_batch(timestamp=NOW_MS - HOUR_MS - 1)
    assert refusal(batch, message_timestamp_before_max_ms=HOUR_MS) == ErrorCode.INVALID_TIMESTAMP


def test_the_producers_timestamps_do_not_matter_where_the_broker_sets_its_own():
    assert refusal(make_batch(timestamp=NOW_MS * 2), message_timestamp_type="LogAppendTime") is None


def test_a_compacted_topic_says_which_records_have_no_key():
    records = [NewRecord(key, b"v", timestamp=NOW_MS) for key in (None, b"k", None)]
    with pytest.raises(InvalidRecords) as caught:
        examine(memoryview(build_batch(records)), cleanup_policy=("compact",))
    assert caught.value.places == (0, 2)


def test_it_is_said_which_timestamps_are_wrong():
    records = [NewRecord(b"k", b"v", timestamp=NOW_MS + later_ms) for later_ms in (0, 2 * HOUR_MS)]
    with pytest.raises(InvalidRecords) as caught:
        examine(memoryview(build_batch(records)))
    assert (caught.value.code, caught.value.places) == (ErrorCode.INVALID_TIMESTAMP, (1,))


@pytest.mark.parametrize("codec", list(Compression))
def test_records_that_are_none_are_refused(codec):
    batch = memoryview(pack_batch(parse_header(make_batch(compression=codec)), b"\xff" * 30))
    assert refusal(batch) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
def test_what_cannot_be_unpacked_is_refused(codec):
    batch = memoryview(pack_batch(parse_header(make_batch()), b"\xff" * 30))
    batch[22] = codec
    seal(batch)
    with pytest.raises((Refused, TooLarge)):
        examine(batch)


def test_a_tombstone_from_the_end_of_time_is_refused():
    payload = bytearray()
    encode_record(payload, 0, INT64_MAX, b"k", None)
    batch = memoryview(pack_batch(parse_header(make_batch()), payload))
    assert refusal(batch, cleanup_policy=("compact",)) == ErrorCode.INVALID_TIMESTAMP
    assert refusal(batch, message_timestamp_type="LogAppendTime") == ErrorCode.INVALID_TIMESTAMP


def test_a_batch_is_left_as_it_is_where_nothing_is_to_be_changed():
    batch = make_batch()
    assert examine(batch) is batch


def test_a_header_that_is_wrong_about_the_timestamps_is_corrected():
    batch = changed(35, NOW_MS.to_bytes(7, "big"))
    assert parse_header(batch).max_timestamp != NOW_MS
    ready = examine(batch)
    assert parse_header(ready).max_timestamp == NOW_MS
    assert check_crc(ready, parse_header(ready))


@pytest.mark.parametrize(
    ("wanted", "codec"), [("uncompressed", Compression.NONE), ("zstd", Compression.ZSTD), ("gzip", Compression.GZIP)]
)
def test_a_topic_may_have_a_codec_of_its_own(wanted, codec):
    ready = examine(make_batch(compression=Compression.LZ4), compression_type=wanted)
    assert parse_header(ready).compression == codec
    assert refusal(ready) is None


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip"])
def test_what_becomes_too_large_under_the_topics_codec_is_refused(wanted):
    values = [bytes(10_000), random.Random(1).randbytes(2_000)]
    batch = build_batch([NewRecord(b"k", value, timestamp=NOW_MS) for value in values], compression=Compression.ZSTD)
    limit = len(batch) if wanted == "uncompressed" else len(examine(memoryview(batch), compression_type=wanted)) - 1
    assert limit >= len(batch)
    assert refusal(memoryview(batch), compression_type=wanted, max_message_bytes=limit) == ErrorCode.MESSAGE_TOO_LARGE


def test_a_batch_that_unpacks_too_far_is_left_undecided():
    batch = memoryview(build_batch([NewRecord(b"k", bytes(LIMIT), timestamp=NOW_MS)], compression=Compression.ZSTD))
    with pytest.raises(TooLarge):
        examine(batch)


def test_the_brokers_time_is_under_the_checksum():
    ready = examine(make_batch(timestamp=5), message_timestamp_type="LogAppendTime")
    header = parse_header(ready)
    assert (header.uses_append_time, header.max_timestamp) == (True, NOW_MS)
    assert check_crc(ready, header)


def test_a_producer_may_not_give_the_time_of_the_append():
    batch = changed(22, b"\x08")
    assert refusal(batch, message_timestamp_type="LogAppendTime") == ErrorCode.INVALID_TIMESTAMP
    assert not parse_header(examine(batch)).uses_append_time


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (bytes(make_batch())[:40], ErrorCode.INVALID_RECORD),
        (bytes(8) + (10).to_bytes(4, "big") + bytes(60), ErrorCode.CORRUPT_MESSAGE),
    ],
    ids=["nothing", "cut short", "a length that cannot be"],
)
def test_what_has_no_header_is_refused(sent, code):
    with pytest.raises(Refused) as caught:
        read_header(memoryview(sent))
    assert caught.value.code == code


def test_a_bit_that_only_compaction_sets_is_no_reason_to_refuse():
    assert refusal(changed(22, b"\x40")) is None
