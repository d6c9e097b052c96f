from __future__ import annotations

import pytest

from zurau.errors import DiskFault
from zurau.ids import TopicId
from zurau.node.disk import RealDisk
from zurau.partition.opening import (
    WALKED_BYTES,
    holds_partition,
    producers_snapshot,
    read_topic_id,
    restore_producers,
    write_topic_id,
)
from zurau.partition.producers import Producers
from zurau.records.batch import parse_header
from zurau.settings import DAY_MS
from zurau.simulation.world import BEGINNING_MS

AN_ID = TopicId(b"0123456789abcdef")
SNAPSHOT = "t-0/producers.snapshot"


def append(partition, batch) -> None:
    partition.append(batch, parse_header(batch))


def last_sequences(producers) -> dict[int, int]:
    return {producer_id: producer.batches[-1].last_sequence for producer_id, producer in producers.items()}


def test_a_topic_id_is_read_as_it_was_written(disk):
    disk.make_directory("t-0")
    write_topic_id(disk, "t-0", AN_ID)
    assert read_topic_id(disk, "t-0") == AN_ID


@pytest.mark.parametrize(
    "content", [b"", bytes(43), b"vers", b"version: 0\ntopic_id: abc", b"version: 0\nt" + bytes(9)]
)
def test_a_topic_id_that_a_power_failure_took_frightens_nobody(disk, content, caplog):
    disk.make_directory("t-0")
    disk.replace_file("t-0/partition.metadata", content)
    assert read_topic_id(disk, "t-0") is None
    assert not caplog.records


@pytest.mark.parametrize("content", [b"", b"version: 0\ntopic_id: short\n", b"version: 0\ntopic_", b"\xff" * 50])
def test_a_torn_topic_id_is_none_at_all(disk, content):
    disk.make_directory("t-0")
    disk.replace_file("t-0/partition.metadata", content)
    assert read_topic_id(disk, "t-0") is None


@pytest.mark.parametrize(
    ("name", "holds"),
    [("partition.metadata", True), ("00000000000000000000.log", True), ("notes.txt", False), ("notes.log", False)],
)
def test_a_partitions_directory_is_known_by_its_files(disk, name, holds):
    disk.make_directory("t-0")
    disk.open(f"t-0/{name}")
    assert holds_partition(disk, "t-0") is holds


def test_producers_are_what_the_log_says_without_a_snapshot(partition, batch, disk):
    append(partition, batch(b"a", b"b", producer_id=1, producer_epoch=0, base_sequence=0))
    append(partition, batch(b"c", producer_id=2, producer_epoch=0, base_sequence=5))
    assert last_sequences(restore_producers(disk, partition.log, BEGINNING_MS)) == {1: 1, 2: 5}


def test_a_snapshot_is_followed_by_the_batches_after_it(partition, batch, disk):
    append(partition, batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0))
    producers_snapshot(disk, partition.log, partition.producers)()
    append(partition, batch(b"b", producer_id=1, producer_epoch=0, base_sequence=1))
    append(partition, batch(b"c", producer_id=2, producer_epoch=0, base_sequence=0))
    assert last_sequences(restore_producers(disk, partition.log, BEGINNING_MS)) == {1: 1, 2: 0}


def test_a_snapshot_of_more_than_the_log_holds_is_thrown_away_for_good(partition, batch, disk):
    append(partition, batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0))
    disk.replace_file(SNAPSHOT, partition.producers.snapshot(offset=7)())
    assert last_sequences(restore_producers(disk, partition.log, BEGINNING_MS)) == {1: 0}
    disk.crash()
    assert disk.read_file(SNAPSHOT) is None


def test_a_small_log_without_producers_needs_no_snapshot(partition, batch, disk):
    append(partition, batch(b"a"))
    producers_snapshot(disk, partition.log, partition.producers)()
    assert not disk.exists(SNAPSHOT)


def test_without_producers_a_snapshot_says_so(partition, batch, disk):
    for _ in range(8):
        append(partition, batch(b"a" * (WALKED_BYTES // 8)))
    producers_snapshot(disk, partition.log, partition.producers)()
    assert Producers().restore(disk.read_file(SNAPSHOT)) == 8
    assert len(restore_producers(disk, partition.log, BEGINNING_MS)) == 0


def test_with_a_snapshot_of_its_end_nothing_of_a_log_is_read(partition, batch, disk):
    for _ in range(8):
        append(partition, batch(b"a" * (WALKED_BYTES // 8)))
    producers_snapshot(disk, partition.log, partition.producers)()
    disk.open("t-0/00000000000000000000.log").truncate(0)
    assert len(restore_producers(disk, partition.log, BEGINNING_MS)) == 0


def test_a_snapshot_that_says_nothing_new_is_not_written_again(partition, batch, disk):
    append(partition, batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0))
    producers_snapshot(disk, partition.log, partition.producers)()
    flushes = disk.flush_count
    producers_snapshot(disk, partition.log, partition.producers)()
    assert disk.flush_count == flushes


def test_a_directory_that_cannot_be_looked_into_is_no_partition(tmp_path):
    class Unreadable(RealDisk):
        def list_directory(self, path):
            raise DiskFault("cannot list lost+found: permission denied")

    assert holds_partition(Unreadable(tmp_path), "lost+found") is False


def test_a_producer_of_old_records_is_not_forgotten_because_of_a_restart(disk, partition, batch):
    append(partition, batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0))
    restored = restore_producers(disk, partition.log, BEGINNING_MS + 10 * DAY_MS)
    restored.expire(BEGINNING_MS + 9 * DAY_MS)
    assert last_sequences(restored) == {1: 0}


def test_a_damaged_snapshot_is_said_and_the_log_alone_counts(caplog, disk, partition, batch):
    append(partition, batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0))
    disk.replace_file(SNAPSHOT, b"00000000\nnothing")
    assert last_sequences(restore_producers(disk, partition.log, BEGINNING_MS)) == {1: 0}
    assert "learned again from the batches" in caplog.text
    assert disk.read_file(SNAPSHOT) is None
