"""What makes a producer's retry harmless."""

from __future__ import annotations

import pytest
from fastcrc import crc32

from zurau.errors import CorruptData, Refused
from zurau.partition.producers import Producers
from zurau.records.batch import BatchHeader, parse_header
from zurau.records.builder import NewRecord, build_batch
from zurau.settings import INT32_MAX
from zurau.wire.kafka.error_codes import ErrorCode


def batch(sequence: int, *, count: int = 1, epoch: int = 0, offset: int = 0, producer_id: int = 7) -> BatchHeader:
    records = [NewRecord(key=None, value=b"x", timestamp=1) for _ in range(count)]
    return parse_header(
        build_batch(records, base_offset=offset, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    )


def written(*headers: BatchHeader) -> Producers:
    producers = Producers()
    for header in headers:
        producers.written(header, now_ms=1)
    return producers


def refusal_of(producers: Producers, header: BatchHeader) -> int:
    with pytest.raises(Refused) as refused:
        producers.find_repeated(header)
    return refused.value.code


def test_the_next_sequence_is_new():
    producers = written(batch(0, count=3))

    assert producers.find_repeated(batch(3)) is None


def test_a_repeated_batch_is_found_with_the_offset_it_got_first():
    producers = written(batch(0, count=3, offset=100), batch(3, offset=103))

    repeated = producers.find_repeated(batch(0, count=3))

    assert repeated is not None
    assert repeated.base_offset == 100


def test_the_last_five_batches_can_be_repeated_and_no_older_one():
    producers = written(*(batch(sequence) for sequence in range(6)))

    assert producers.find_repeated(batch(1)) is not None
    assert refusal_of(producers, batch(0)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_in_the_sequence_is_refused():
    assert refusal_of(written(batch(0)), batch(2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_nobody_knows_may_start_anywhere():
    assert Producers().find_repeated(batch(41)) is None


def test_an_older_epoch_is_refused():
    assert refusal_of(written(batch(0, epoch=2)), batch(1, epoch=1)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_starts_at_zero():
    producers = written(batch(0, count=5))

    assert producers.find_repeated(batch(0, epoch=1)) is None
    assert refusal_of(producers, batch(5, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap_to_zero():
    producers = written(batch(INT32_MAX - 1, count=2))

    assert producers.find_repeated(batch(0)) is None


def test_a_snapshot_restores_the_same_answers():
    producers = written(batch(0, count=3, offset=10), batch(3, offset=13))
    restored = Producers()

    assert restored.restore(producers.snapshot(14)()) == 14
    assert restored.find_repeated(batch(0, count=3)) == producers.find_repeated(batch(0, count=3))
    assert restored.find_repeated(batch(4)) is None


def test_silent_producers_are_forgotten():
    producers = written(batch(0))

    producers.expire(older_than_ms=2)

    assert len(producers) == 0


def test_batches_without_a_producer_id_leave_no_trace():
    assert len(written(batch(-1, producer_id=-1, epoch=-1))) == 0


def test_past_the_limit_the_producer_that_was_silent_longest_is_forgotten(monkeypatch):
    monkeypatch.setattr("zurau.partition.producers.PRODUCERS_MAX", 2)
    producers = written(
        batch(0, producer_id=1), batch(0, producer_id=2), batch(1, producer_id=1), batch(0, producer_id=3)
    )

    assert [producer_id for producer_id, _ in producers.items()] == [1, 3]


@pytest.mark.parametrize("content", [b"", b"00000000\n{}", b"no snapshot"])
def test_a_snapshot_that_does_not_match_its_checksum_is_refused(content):
    with pytest.raises(CorruptData, match="checksum"):
        Producers().restore(content)


def test_a_snapshot_of_something_else_is_refused():
    facts = b'{"offset": "seven"}'
    with pytest.raises(CorruptData, match="cannot be read"):
        Producers().restore(b"%08x\n%s" % (crc32.iscsi(facts), facts))
