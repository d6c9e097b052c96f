"""Snapshots of a machine's state: what is damaged is noticed, and the one before it serves."""

from __future__ import annotations

import pytest

from zurau.errors import CorruptData
from zurau.machines.machine import StateRecord
from zurau.partition import snapshots
from zurau.partition.snapshots import NO_SNAPSHOT, SnapshotId, list_snapshots, load_newest, remove_old
from zurau.simulation.disk import SimulatedDisk

FIRST, SECOND, THIRD = SnapshotId(10, 1), SnapshotId(20, 1), SnapshotId(30, 2)


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk(0)
    disk.make_directory("m-0")
    return disk


def state(word: str, count: int = 3) -> list[StateRecord]:
    return [StateRecord(None, f"{word} {number}".encode()) for number in range(count)]


def write(disk: SimulatedDisk, snapshot: SnapshotId, word: str, count: int = 3) -> int:
    return snapshots.write(disk, "m-0", snapshot, state(word, count))


def spoil(disk: SimulatedDisk, snapshot: SnapshotId, keep_bytes: int) -> None:
    path = f"m-0/{snapshot.file_name}"
    content = disk.read_file(path)
    disk.replace_file(path, content[:keep_bytes] if keep_bytes else bytes(len(content)))


def test_a_directory_without_snapshots_has_an_empty_one(disk):
    assert load_newest(disk, "m-0", log_start_offset=0, log_end_offset=100) is NO_SNAPSHOT


def test_the_newest_snapshot_is_loaded(disk):
    write(disk, FIRST, "first")
    write(disk, SECOND, "second")
    assert load_newest(disk, "m-0", log_start_offset=10, log_end_offset=100) == (20, state("second"))


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 2000])
def test_a_snapshot_holds_any_number_of_records(disk, count):
    write(disk, FIRST, "many", count)
    assert load_newest(disk, "m-0", log_start_offset=10, log_end_offset=100).records == state("many", count)


def test_the_log_may_go_up_to_the_one_before_the_newest(disk):
    assert write(disk, FIRST, "first") == 0
    assert write(disk, SECOND, "second") == FIRST.offset
    assert write(disk, THIRD, "third") == SECOND.offset


@pytest.mark.parametrize("keep_bytes", [0, 1, 60, 100])
def test_a_damaged_snapshot_is_passed_over(disk, caplog, keep_bytes):
    write(disk, FIRST, "first")
    write(disk, SECOND, "second", count=1000)
    spoil(disk, SECOND, keep_bytes)
    assert load_newest(disk, "m-0", log_start_offset=10, log_end_offset=100) == (10, state("first"))
    assert SECOND.file_name in caplog.text


def test_a_snapshot_that_lost_its_last_batch_is_damaged(disk):
    write(disk, FIRST, "many", count=1000)
    path = f"m-0/{FIRST.file_name}"
    *_, last = snapshots.iter_batches(disk.read_file(path))
    spoil(disk, FIRST, disk.file_size(path) - len(last[1]))
    with pytest.raises(CorruptData, match="no whole snapshot"):
        load_newest(disk, "m-0", log_start_offset=10, log_end_offset=100)


def test_a_snapshot_that_is_ahead_of_the_log_is_passed_over(disk):
    write(disk, FIRST, "first")
    write(disk, SECOND, "second")
    assert load_newest(disk, "m-0", log_start_offset=10, log_end_offset=19) == (10, state("first"))


def test_snapshots_from_which_the_log_does_not_go_on_are_removed(disk):
    for snapshot in (FIRST, SECOND, THIRD):
        write(disk, snapshot, "any")
    remove_old(disk, "m-0", log_start_offset=20)
    assert list_snapshots(disk, "m-0") == [SECOND, THIRD]
