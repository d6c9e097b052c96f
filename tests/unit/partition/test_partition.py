from __future__ import annotations

from dataclasses import replace

import pytest

from zurau.errors import OffsetOutOfRange, Refused
from zurau.log.settings import LogSettings
from zurau.partition.partition import UNAWAITED_FLUSH_MS
from zurau.records.batch import parse_header
from zurau.simulation.client import records_in
from zurau.wire.kafka.error_codes import ErrorCode

FLUSH_MS = 1


def append(partition, batch):
    """Append, and wait for it as acks=all does."""
    appended = partition.append(batch, parse_header(batch))
    partition.wait_high_watermark(appended.next_offset)
    return appended


def read(partition, offset: int = 0) -> list[bytes | None]:
    return [record.value for record in records_in(partition.read(offset, 1 << 20, partition.high_watermark))]


def test_a_batch_gets_the_next_offsets_and_the_leaders_epoch(partition, batch):
    append(partition, batch(b"a", b"b"))
    second = batch(b"c")
    appended = append(partition, second)
    header = parse_header(second)
    assert (appended.base_offset, appended.next_offset) == (2, 3)
    assert (header.base_offset, header.leader_epoch) == (2, partition.leader_epoch)


def test_the_high_watermark_moves_when_the_disk_has_it(partition, batch, clock):
    append(partition, batch(b"a"))
    assert partition.high_watermark == 0
    clock.advance(FLUSH_MS)
    assert partition.high_watermark == 1


def test_appends_that_come_during_a_flush_share_the_next(partition, batch, clock, disk):
    append(partition, batch(b"a"))
    clock.advance(FLUSH_MS / 2)
    before = disk.flush_count
    for number in range(20):
        append(partition, batch(b"%d" % number))
    clock.advance(FLUSH_MS / 2)
    assert partition.high_watermark == 1
    clock.advance(FLUSH_MS)
    assert partition.high_watermark == 21
    assert disk.flush_count - before < 5


def test_a_batch_that_nobody_waits_for_is_flushed_a_little_later(partition, batch, clock):
    data = batch(b"a")
    partition.append(data, parse_header(data))
    clock.advance(FLUSH_MS)
    assert partition.high_watermark == 0
    clock.advance(UNAWAITED_FLUSH_MS)
    assert partition.high_watermark == 1


def test_with_flush_os_the_high_watermark_does_not_wait(open_partition, batch):
    partition = open_partition(LogSettings(flush="os"))
    append(partition, batch(b"a"))
    assert partition.high_watermark == 1


def test_a_change_to_flush_os_commits_what_waits(partition, batch):
    append(partition, batch(b"a"))
    partition.settings_changed(replace(partition.log.settings, flush="os"))
    assert partition.high_watermark == 1


def test_nothing_above_the_limit_is_read(partition, batch, clock):
    append(partition, batch(b"a"))
    clock.advance(FLUSH_MS)
    append(partition, batch(b"b"))
    assert read(partition) == [b"a"]
    assert read(partition, 1) == []
    assert read(partition, 2) == []


def test_an_offset_beyond_the_log_is_out_of_range(partition):
    with pytest.raises(OffsetOutOfRange):
        partition.read(1, 100, 0)


def test_who_waits_is_released_by_the_commit(partition, batch, clock):
    waiting = partition.wait_high_watermark(1)
    append(partition, batch(b"a"))
    assert not waiting.is_done
    clock.advance(FLUSH_MS)
    assert waiting.is_done
    assert partition.wait_high_watermark(1).is_done


def test_who_waits_for_a_partition_that_closes_is_told_why(partition):
    waiting = partition.wait_high_watermark(1)
    partition.close(lambda: Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    with pytest.raises(Refused) as caught:
        waiting.result()
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_refused_batch_changes_nothing(partition, batch):
    damaged = batch(b"a")
    damaged[-1] ^= 1
    with pytest.raises(Refused):
        append(partition, damaged)
    assert partition.log.end_offset == 0
    assert append(partition, batch(b"b")).base_offset == 0


def test_a_batch_that_the_disk_did_not_take_is_not_remembered_of_its_producer(partition, batch, disk):
    facts = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    disk.capacity_bytes = disk.used_bytes
    with pytest.raises(Refused) as caught:
        append(partition, batch(b"a", **facts))
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    disk.capacity_bytes = 1 << 40
    append(partition, batch(b"a", **facts))
    assert partition.log.end_offset == 1


def test_a_partition_whose_flush_failed_is_broken_for_good_and_can_be_read(partition, batch, clock, disk):
    append(partition, batch(b"a"))
    clock.advance(FLUSH_MS)
    disk.fail_flushes = True
    waiting = partition.wait_high_watermark(2)
    append(partition, batch(b"b"))
    clock.advance(FLUSH_MS)
    disk.fail_flushes = False
    assert partition.is_broken
    for attempt in (waiting.result, lambda: append(partition, batch(b"c"))):
        with pytest.raises(Refused) as caught:
            attempt()
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert read(partition) == [b"a"]


@pytest.mark.parametrize(("wanted", "start"), [(1, 1), (-1, 2), (0, 0), (2, 2)])
def test_records_before_an_offset_can_be_deleted(partition, batch, clock, wanted, start):
    append(partition, batch(b"a"))
    append(partition, batch(b"b"))
    clock.advance(3 * FLUSH_MS)
    assert partition.delete_records_before(wanted) == partition.log.start_offset == start


@pytest.mark.parametrize("wanted", [-2, 2, 100])
def test_records_that_are_not_committed_cannot_be_deleted(partition, batch, clock, wanted):
    append(partition, batch(b"a"))
    clock.advance(3 * FLUSH_MS)
    append(partition, batch(b"b"))
    with pytest.raises(Refused) as caught:
        partition.delete_records_before(wanted)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_full_disk_refuses_to_delete_records(partition, batch, clock, disk):
    append(partition, batch(b"a"))
    clock.advance(3 * FLUSH_MS)
    disk.capacity_bytes = 0
    with pytest.raises(Refused) as caught:
        partition.delete_records_before(1)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_each_opening_leads_in_a_later_epoch(open_partition, batch, clock):
    first = open_partition()
    append(first, batch(b"a"))
    clock.advance(3 * FLUSH_MS)
    first.log.close()
    assert open_partition(clean=True).leader_epoch == first.leader_epoch + 1
