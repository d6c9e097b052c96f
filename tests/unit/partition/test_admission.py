from __future__ import annotations

import pytest

from zurau.errors import Refused
from zurau.log.settings import LogSettings
from zurau.partition.admission import Admission, InvalidRecords
from zurau.records.batch import parse_header, seal
from zurau.records.builder import NewRecord, build_batch
from zurau.records.compression import Compression
from zurau.wire.kafka.error_codes import ErrorCode

NOW_MS = 1_767_657_600_000
HOUR_MS = 3_600_000


def make_batch(*, timestamp: int = NOW_MS, key: bytes | None = b"k", **facts) -> memoryview:
    return memoryview(build_batch([NewRecord(key, b"v", timestamp=timestamp)], **facts))


def refusal(batch: memoryview, **settings) -> ErrorCode | None:
    """The code with which a batch is refused, or None if it may enter."""
    try:
        Admission(LogSettings(**settings), NOW_MS).check(batch, parse_header(batch))
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
    ],
    ids=["magic", "codec", "control", "transaction", "no records", "negative count", "offsets", "epoch", "sequence"],
)
def test_what_producers_may_not_send_is_refused(batch, code):
    assert refusal(batch) == code


@pytest.mark.parametrize(("length", "code"), [(-1, ErrorCode.CORRUPT_MESSAGE), (1, ErrorCode.INVALID_RECORD)])
def test_a_batch_must_fill_its_bytes(length, code):
    batch = bytes(make_batch())
    sent = batch[:length] if length < 0 else batch + bytes(length)
    assert refusal(memoryview(bytearray(sent))) == code


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
    batch = memoryview(build_batch(records))
    with pytest.raises(InvalidRecords) as caught:
        Admission(LogSettings(cleanup_policy=("compact",)), NOW_MS).check(batch, parse_header(batch))
    assert caught.value.places == [0, 2]


def test_a_compacted_topic_refuses_what_it_cannot_unpack():
    batch = make_batch()
    batch[61:] = b"\xff" * (len(batch) - 61)
    seal(batch)
    assert refusal(batch, cleanup_policy=("compact",)) == ErrorCode.INVALID_RECORD


def test_a_batch_is_left_as_it_is_where_nothing_is_to_be_changed():
    batch = make_batch()
    assert Admission(LogSettings(), NOW_MS).make_ready(batch, parse_header(batch)) is batch


@pytest.mark.parametrize(
    ("wanted", "codec"), [("uncompressed", Compression.NONE), ("zstd", Compression.ZSTD), ("gzip", Compression.GZIP)]
)
def test_a_topic_may_have_a_codec_of_its_own(wanted, codec):
    batch = make_batch(compression=Compression.LZ4)
    admission = Admission(LogSettings(compression_type=wanted), NOW_MS)
    ready = admission.make_ready(batch, parse_header(batch))
    assert parse_header(ready).compression == codec
    assert refusal(ready) is None


def test_the_brokers_time_is_under_the_checksum():
    batch = make_batch(timestamp=5)
    admission = Admission(LogSettings(message_timestamp_type="LogAppendTime"), NOW_MS)
    ready = admission.make_ready(batch, parse_header(batch))
    header = parse_header(ready)
    assert (header.uses_append_time, header.max_timestamp) == (True, NOW_MS)
    assert refusal(ready) is None
