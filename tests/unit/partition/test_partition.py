from __future__ import annotations

from dataclasses import replace

import pytest

from zurau.errors import OffsetOutOfRange, Refused
from zurau.log.settings import LogSettings
from zurau.partition.flushing import UNAWAITED_FLUSH_MS
from zurau.partition.refusals import CONSEQUENCES_MS
from zurau.pending import start as run
from zurau.records.batch import parse_header
from zurau.replica.core.roles import Role
from zurau.simulation.client import records_in
from zurau.wire.kafka.error_codes import ErrorCode

FLUSH_MS = 1


def append(partition, batch):
    """Append, and wait for it as acks=all does."""
    appended = partition.append(batch, parse_header(batch))
    partition.wait_committed(appended.next_offset)
    return appended


def refused(partition, batch) -> ErrorCode:
    with pytest.raises(Refused) as caught:
        partition.append(batch, parse_header(batch))
    return caught.value.code


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
    waiting = partition.wait_committed(1)
    append(partition, batch(b"a"))
    assert not waiting.is_done
    clock.advance(FLUSH_MS)
    assert waiting.is_done
    assert partition.wait_committed(1).is_done


def test_who_waits_for_a_partition_that_closes_is_told_why(partition):
    waiting = partition.wait_committed(1)
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


@pytest.mark.parametrize("first", [0, 1])
def test_a_batch_behind_one_that_the_disk_did_not_take_is_refused_for_the_same_reason(
    partition, batch, disk, clock, first
):
    facts = {"producer_id": 7, "producer_epoch": 0}
    for sequence in range(first):
        append(partition, batch(b"a", base_sequence=sequence, **facts))
    disk.capacity_bytes = disk.used_bytes
    with pytest.raises(Refused):
        append(partition, batch(b"a", base_sequence=first, **facts))
    disk.capacity_bytes = 1 << 40
    with pytest.raises(Refused) as caught:  # it was under way when the first was refused
        append(partition, batch(b"b", base_sequence=first + 1, **facts))
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    append(partition, batch(b"a", base_sequence=first, **facts))
    append(partition, batch(b"b", base_sequence=first + 1, **facts))
    assert refused(partition, batch(b"d", base_sequence=first + 3, **facts)) is ErrorCode.KAFKA_STORAGE_ERROR
    clock.advance(CONSEQUENCES_MS)
    assert refused(partition, batch(b"d", base_sequence=first + 3, **facts)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("known", [True, False])
def test_a_batch_behind_one_that_came_before_there_was_a_leader_is_refused_for_that(partition, batch, clock, known):
    facts = {"producer_id": 7, "producer_epoch": 0}
    append(partition, batch(b"a", base_sequence=0, **facts) if known else batch(b"a"))
    partition.role_changed(Role.FOLLOWER, 8, None)
    assert refused(partition, batch(b"b", base_sequence=1, **facts)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.role_changed(Role.LEADER, 9, None)
    gap = batch(b"c", base_sequence=2, **facts)
    assert refused(partition, gap) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    clock.advance(CONSEQUENCES_MS - 1)
    assert refused(partition, gap) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    clock.advance(1)
    if known:
        assert refused(partition, gap) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    else:
        append(partition, gap)


def test_who_writes_under_a_new_leader_is_told_of_gaps_of_its_own(partition, batch):
    facts = {"producer_id": 7, "producer_epoch": 0}
    append(partition, batch(b"a"))
    partition.role_changed(Role.LEADER, 9, None)
    append(partition, batch(b"b", base_sequence=0, **facts))
    assert refused(partition, batch(b"d", base_sequence=2, **facts)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_partition_whose_flush_failed_is_broken_for_good_and_can_be_read(partition, batch, clock, disk):
    append(partition, batch(b"a"))
    clock.advance(FLUSH_MS)
    disk.fail_flushes = True
    waiting = partition.wait_committed(2)
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
    deleted = run(partition.delete_records_before(wanted))
    clock.advance(1)
    assert deleted.result() == partition.log.start_offset == start


def test_while_a_new_start_is_written_down_others_append_and_read(partition, batch, clock):
    for value in (b"a", b"b"):
        append(partition, batch(value))
    clock.advance(3 * FLUSH_MS)
    deleted = run(partition.delete_records_before(1))
    assert not deleted.is_done
    assert partition.read(0, 1000, 2)
    assert append(partition, batch(b"c")).base_offset == 2
    clock.advance(3 * FLUSH_MS)
    assert (deleted.result(), partition.log.start_offset, partition.high_watermark) == (1, 1, 3)


def test_deletions_that_come_together_leave_the_later_start(partition, batch, clock):
    for value in (b"a", b"b", b"c"):
        append(partition, batch(value))
    clock.advance(3 * FLUSH_MS)
    deletions = [run(partition.delete_records_before(offset)) for offset in (1, 3, 2)]
    clock.advance(1)
    assert [each.result() for each in deletions] == [1, 3, 3]


def test_a_deletion_that_waits_for_another_is_refused_when_the_partition_closes(partition, batch, clock):
    append(partition, batch(b"a"))
    clock.advance(3 * FLUSH_MS)
    _, waiting = (run(partition.delete_records_before(1)) for _ in range(2))
    partition.close(lambda: Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "it stops"))
    assert isinstance(waiting.error, Refused)


def test_what_expires_while_a_new_start_is_written_down_stays_gone(open_partition, batch, clock):
    partition = open_partition(LogSettings(segment_bytes=100, retention_bytes=60))
    for value in (b"a", b"b", b"c"):
        append(partition, batch(value))
    clock.advance(3 * FLUSH_MS)
    run(partition.delete_records_before(1))
    assert partition.log.expire(clock.now_ms(), partition.safe_high_watermark) == 2
    clock.advance(1)
    partition.log.close()
    assert open_partition(clean=True).log.start_offset == 2


@pytest.mark.parametrize("wanted", [-2, 2, 100])
def test_records_that_are_not_committed_cannot_be_deleted(partition, batch, clock, wanted):
    append(partition, batch(b"a"))
    clock.advance(3 * FLUSH_MS)
    append(partition, batch(b"b"))
    with pytest.raises(Refused) as caught:
        run(partition.delete_records_before(wanted)).result()
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_full_disk_refuses_to_delete_records(partition, batch, clock, disk):
    append(partition, batch(b"a"))
    clock.advance(3 * FLUSH_MS)
    disk.capacity_bytes = 0
    deleted = run(partition.delete_records_before(1))
    clock.advance(1)
    with pytest.raises(Refused) as caught:
        deleted.result()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    disk.capacity_bytes = 1_000_000
    assert append(partition, batch(b"b")).base_offset == 1


def test_each_opening_leads_in_a_later_epoch(open_partition, batch, clock):
    first = open_partition()
    append(first, batch(b"a"))
    clock.advance(3 * FLUSH_MS)
    first.log.close()
    assert open_partition(clean=True).leader_epoch == first.leader_epoch + 1


def test_with_flush_os_records_are_deleted_when_what_is_behind_them_is_safe(open_partition, batch, clock):
    partition = open_partition(LogSettings(flush="os"))
    clock.advance(3 * FLUSH_MS)
    append(partition, batch(b"a"))
    deleted = run(partition.delete_records_before(1))
    assert not deleted.is_done
    clock.advance(3 * FLUSH_MS)
    assert deleted.result() == partition.log.flushed_offset == 1


def test_an_end_that_may_still_rise_is_not_told(disk, open_partition, partition):
    partition.role_changed(Role.LEADER, partition.leader_epoch + 1, partition.leader)
    with pytest.raises(Refused) as caught:
        partition.require_established()
    assert caught.value.code is ErrorCode.OFFSET_NOT_AVAILABLE


def test_a_partition_that_is_led_elsewhere_takes_nothing(partition, batch):
    partition.role_changed(Role.FOLLOWER, partition.leader_epoch + 1, None)
    with pytest.raises(Refused) as caught:
        append(partition, batch(b"a"))
    assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_damage_that_a_consumer_comes_to_is_named(partition, batch, clock, disk):
    append(partition, batch(b"a" * 100))
    clock.advance(3 * FLUSH_MS)
    disk.make_unreadable("t-0/00000000000000000000.log", range(50))
    with pytest.raises(Refused) as caught:
        partition.read(0, 100, 1, may_block=True)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_nothing_is_written_while_a_change_of_voters_waits_for_its_place(batch, partition):
    partition.shell.core.log.wrote(1)
    with pytest.raises(Refused, match="busy with its voters"):
        partition.append_own(bytearray(batch(b"a")))
    assert partition.log.end_offset == 0
