"""Batches that take long to validate: in workers, in the order of each client, and not without bounds."""

from __future__ import annotations

import pytest

from zurau.errors import Refused
from zurau.log.settings import LogSettings
from zurau.partition import admission, unpacking, validation
from zurau.partition.partition import Appended
from zurau.pending import Pending
from zurau.records.batch import parse_header
from zurau.records.compression import Compression
from zurau.simulation.client import records_in
from zurau.wire.kafka.error_codes import ErrorCode

LONG_MS = 1000


@pytest.fixture
def bomb(batch):
    """Makes a small batch that unpacks to a megabyte."""

    def bomb(value: bytes = b"v", **facts) -> memoryview:
        return batch(value + bytes(1_000_000), compression=Compression.ZSTD, **facts)

    return bomb


def append(partition, batch, client: str | None = None) -> Appended | Pending[Appended]:
    return partition.append(batch, parse_header(batch), client)


def values(partition) -> list[bytes]:
    whole = partition.log.read(0, 1 << 30, partition.log.end_offset, may_block=True)
    return [record.value[:1] for record in records_in(whole)]


def test_what_is_examined_at_once_is_answered_at_once(partition, batch):
    assert isinstance(append(partition, batch(b"a")), Appended)


def test_what_takes_long_is_examined_by_a_worker(partition, bomb, clock):
    appended = append(partition, bomb())
    assert (appended.is_done, partition.log.end_offset) == (False, 0)
    clock.advance(LONG_MS)
    assert appended.result().base_offset == 0


def test_later_batches_wait_for_one_that_takes_long(partition, batch, bomb, clock):
    outcomes = [append(partition, each) for each in (bomb(b"a"), batch(b"b"), bomb(b"c"), batch(b"d"))]
    clock.advance(LONG_MS)
    assert [outcome.result().base_offset for outcome in outcomes] == [0, 1, 2, 3]
    assert values(partition) == [b"a", b"b", b"c", b"d"]


def test_a_sequence_is_kept_over_one_that_takes_long(partition, batch, bomb, clock):
    facts = {"producer_id": 7, "producer_epoch": 0}
    first, second = bomb(b"a", base_sequence=0, **facts), batch(b"b", base_sequence=1, **facts)
    again = memoryview(bytearray(first))
    outcomes = [append(partition, each) for each in (first, second, again)]
    clock.advance(LONG_MS)
    assert [outcome.result().base_offset for outcome in outcomes] == [0, 1, 0]


def test_whoever_is_answered_may_send_the_next_at_once(partition, batch, bomb, clock):
    later: list[Pending[Appended]] = []
    append(partition, bomb(b"a")).then(lambda _: later.append(append(partition, bomb(b"b"))))
    append(partition, batch(b"c"))
    clock.advance(LONG_MS)
    assert later[0].result().base_offset == 2
    assert values(partition) == [b"a", b"c", b"b"]


def test_a_refused_batch_does_not_hold_up_the_next(open_partition, batch, bomb, clock):
    partition = open_partition(LogSettings(cleanup_policy=("compact",)))
    refused, taken = append(partition, bomb()), append(partition, bomb(b"b", key=b"k"))
    clock.advance(LONG_MS)
    with pytest.raises(Refused):
        refused.result()
    assert taken.result().base_offset == 0
    assert isinstance(append(partition, batch(b"c", key=b"k")), Appended)


def test_a_batch_that_lies_about_its_size_goes_to_the_next_queue(open_partition, batch, clock, monkeypatch):
    monkeypatch.setattr(admission, "QUICK_UNPACKED_BYTES", 1000)
    monkeypatch.setattr(unpacking, "SMALL_BYTES", 1000)
    monkeypatch.setattr(unpacking, "MEDIUM_BYTES", 5000)
    partition = open_partition()
    taken = batch(b"x" * 100_000, compression=Compression.LZ4)
    appended = append(partition, taken)
    clock.advance(LONG_MS)
    assert appended.result().base_offset == 0


def test_a_partition_that_is_closed_ends_what_waits(partition, batch, bomb, clock):
    outcomes = [append(partition, each) for each in (bomb(), batch(b"b"))]
    partition.close(lambda: Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "gone"))
    clock.advance(LONG_MS)
    for outcome in outcomes:
        with pytest.raises(Refused, match="gone"):
            outcome.result()
    assert partition.log.end_offset == 0


def test_what_waits_is_bounded(partition, bomb, clock, monkeypatch):
    monkeypatch.setattr(validation, "WAITING_BYTES_MAX", len(bomb()) + 1)
    first = append(partition, bomb(b"a"))
    with pytest.raises(Refused) as refused:
        append(partition, bomb(b"b"))
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    clock.advance(LONG_MS)
    assert first.result().base_offset == 0
    append(partition, bomb(b"c"))
    clock.advance(LONG_MS)
    assert values(partition) == [b"a", b"c"]


def test_with_the_smallest_limits_everything_is_validated_by_workers(open_partition, batch, clock, monkeypatch):
    for name in ("QUICK_BYTES", "QUICK_UNPACKED_BYTES", "QUICK_REPACKED_BYTES"):
        monkeypatch.setattr(admission, name, 0)
    monkeypatch.setattr(unpacking, "SMALL_BYTES", 1)
    monkeypatch.setattr(unpacking, "MEDIUM_BYTES", 1)
    partition = open_partition()
    outcomes = [append(partition, batch(b"%d" % codec, compression=codec)) for codec in Compression]
    clock.advance(LONG_MS)
    assert [outcome.result().base_offset for outcome in outcomes] == list(range(len(Compression)))


def test_another_clients_batch_does_not_wait_for_one_that_takes_long(partition, batch, bomb, clock):
    slow = [append(partition, bomb(b"a"), "one"), append(partition, batch(b"b"), "one")]
    assert append(partition, batch(b"c"), "another").base_offset == 0
    clock.advance(LONG_MS)
    assert [outcome.result().base_offset for outcome in slow] == [1, 2]


def test_who_waits_with_nothing_is_let_in_when_others_wait_with_too_much(partition, bomb, clock, monkeypatch):
    monkeypatch.setattr(validation, "WAITING_BYTES_MAX", len(bomb()) + 1)
    append(partition, bomb(b"a"), "one")
    late = append(partition, bomb(b"b"), "another")
    clock.advance(LONG_MS)
    assert late.result().base_offset == 1


def test_one_that_lies_about_its_size_behind_another_is_examined_by_a_worker_too(partition, batch, bomb, clock):
    first = append(partition, bomb(b"a"))
    second = append(partition, batch(b"b" * 900_000, compression=Compression.LZ4))
    clock.advance(LONG_MS)
    assert [first.result().base_offset, second.result().base_offset] == [0, 1]


def test_what_is_refused_at_once_behind_another_is_told(open_partition, batch, bomb, clock):
    partition = open_partition(LogSettings(cleanup_policy=("compact",)))
    first, second = append(partition, bomb(b"a", key=b"k")), append(partition, batch(b"no key"))
    clock.advance(LONG_MS)
    assert first.result().base_offset == 0
    with pytest.raises(Refused):
        second.result()


def test_what_the_disk_has_no_room_for_after_its_examination_is_refused(partition, bomb, clock, disk):
    appended = append(partition, bomb())
    disk.capacity_bytes = disk.used_bytes
    clock.advance(LONG_MS)
    with pytest.raises(Refused) as caught:
        appended.result()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
