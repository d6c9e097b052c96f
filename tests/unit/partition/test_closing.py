"""A clean stop of many partitions."""

from __future__ import annotations

import pytest

from zurau.errors import CorruptData, FlushFailed
from zurau.log.last_known import LastKnown
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.partition.closing import close_together
from zurau.partition.partition import Partition
from zurau.records.batch import parse_header

PARTITIONS = 20
SETTINGS = LogSettings(segment_bytes=200, index_interval_bytes=0)


@pytest.fixture
def partitions(open_partition, batch) -> list[Partition]:
    """Some with records in several segments that are not flushed yet, one of them of an idempotent producer."""
    made = []
    for number in range(PARTITIONS):
        partition = open_partition(SETTINGS, clean=True, number=number)
        for value in (b"a", b"b" * 100, b"c" * 100):
            plain = batch(value)
            partition.append(plain, parse_header(plain))
        last = batch(b"d", producer_id=7, producer_epoch=0, base_sequence=0)
        partition.append(last, parse_header(last))
        made.append(partition)
    return made


def reopened(disk, number: int, end_offset: int) -> Log:
    known = LastKnown(end_offset, end_offset, kept_unflushed=False)
    return Log.open(disk, f"t-{number}", SETTINGS, now_ms=0, clean=True, last_known=known)


def test_many_partitions_are_closed_with_a_few_flushes(disk, partitions):
    before = disk.flush_count
    assert close_together(disk, partitions) == partitions
    assert disk.flush_count - before < PARTITIONS / 4


def test_everything_survives_a_power_failure_right_after_it(disk, partitions):
    close_together(disk, partitions)
    disk.flush_all()  # as the broker's own mark of a clean stop does
    disk.crash()
    for number in range(PARTITIONS):
        log = reopened(disk, number, 4)
        assert (log.end_offset, log.damage) == (4, [])


def test_a_power_failure_at_any_moment_of_it_loses_nothing_that_was_flushed(disk, partitions):
    disk.flush_all()
    disk.fail_power_after(partitions[0].log.end_offset * 7)
    close_together(disk, partitions)
    disk.crash()
    for number in range(PARTITIONS):
        known = LastKnown(4, None, kept_unflushed=False)
        log = Log.open(disk, f"t-{number}", SETTINGS, now_ms=0, clean=False, last_known=known)
        assert (log.end_offset, log.damage) == (4, [])


def test_a_flush_that_fails_leaves_none_in_good_order(disk, partitions):
    disk.fail_flushes = True
    assert close_together(disk, partitions) == []


def test_a_partition_that_cannot_be_written_is_the_only_one_to_be_checked(disk, partitions):
    disk.remove_tree("t-3")
    assert close_together(disk, partitions) == partitions[:3] + partitions[4:]


def test_one_whose_flush_failed_before_is_not_in_good_order(disk, partitions):
    partitions[0].fault = FlushFailed("before")
    assert close_together(disk, partitions) == partitions[1:]


def test_damage_of_one_that_is_broken_is_known_after_a_restart(disk, open_partition, batch):
    """A start looks at ends of segments alone, so else it would be forgotten; or, without room, it is found again."""
    partition = open_partition(LogSettings(index_interval_bytes=0), clean=True, number=0)
    for value in (b"a", b"b", b"c"):
        plain = batch(value)
        partition.append(plain, parse_header(plain))
    close_together(disk, [partition])
    disk.flip_bit("t-0/00000000000000000000.log", 65)
    disk.forget_cached()
    partition.log = reopened(disk, 0, 3)
    assert not partition.log.damage
    with pytest.raises(CorruptData):
        partition.log.read(0, 1000, 3, may_block=True)
    partition.fault = FlushFailed("it is damaged")
    for room_bytes, is_known in ((0, False), (10_000, True)):
        disk.capacity_bytes = disk.used_bytes + room_bytes
        close_together(disk, [partition])
        assert bool(reopened(disk, 0, 3).damage) is is_known
