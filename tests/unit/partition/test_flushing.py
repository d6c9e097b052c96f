"""When a log is flushed, and what happens when that does not work or comes too late."""

from __future__ import annotations

from dataclasses import replace

import pytest

from zurau.errors import DiskFault, Refused
from zurau.log import flushing as log_flushing
from zurau.log.settings import LogSettings
from zurau.partition import flushing
from zurau.partition.flushing import RETRY_FLUSH_MS
from zurau.records.batch import parse_header
from zurau.wire.kafka.error_codes import ErrorCode

LONG_MS = 1000


@pytest.fixture
def write(batch):
    """Appends a record that nobody waits for."""

    def write(partition, value: bytes = b"a") -> None:
        partition.append_own(bytearray(batch(value)))

    return write


@pytest.fixture
def refused_epochs(disk, monkeypatch):
    """A disk without room for the file of epochs: a flush that fails without losing anything."""

    def refuse(path: str, content: bytes) -> None:
        raise DiskFault(f"no room for {path}")

    monkeypatch.setattr(disk, "replace_file", refuse)
    return monkeypatch


def test_with_flush_os_a_flush_comes_within_flush_ms(clock, open_partition, write):
    partition = open_partition(LogSettings(flush="os", flush_ms=500))
    clock.advance(LONG_MS)
    write(partition)
    clock.advance(499)
    assert partition.log.flushed_offset == 0
    clock.advance(2)
    assert partition.log.flushed_offset == 1


def test_with_flush_os_and_no_limit_nothing_is_flushed_by_itself(clock, open_partition, write):
    partition = open_partition(LogSettings(flush="os"))
    clock.advance(LONG_MS)
    write(partition)
    clock.advance(LONG_MS)
    assert partition.log.flushed_offset == 0


def test_with_flush_os_no_more_than_so_many_bytes_wait_for_a_flush(clock, monkeypatch, open_partition, write):
    partition = open_partition(LogSettings(flush="os"))
    clock.advance(LONG_MS)
    write(partition)
    monkeypatch.setattr(log_flushing, "UNFLUSHED_BYTES_MAX", 2 * partition.log.size_bytes)
    write(partition)
    clock.advance(LONG_MS)
    assert partition.log.flushed_offset == 0
    write(partition)
    clock.advance(LONG_MS)
    assert partition.log.flushed_offset == 3
    write(partition)
    clock.advance(LONG_MS)
    assert partition.log.flushed_offset == 3


def test_a_flush_of_nothing_is_done_in_its_turn(clock, partition):
    clock.advance(LONG_MS)
    partition.shell.flushing.want(99)
    clock.advance(LONG_MS)
    assert not partition.shell.flushing.is_under_way
    assert partition.fault is None


def test_many_segments_are_flushed_some_at_a_time_and_all_in_the_end(clock, monkeypatch, open_partition, write):
    monkeypatch.setattr(flushing, "FLUSHED_AT_ONCE", 2)
    partition = open_partition(LogSettings(segment_bytes=100))
    clock.advance(LONG_MS)
    for _ in range(7):
        write(partition)
    seen = []
    partition.on_commit = lambda: seen.append(partition.high_watermark)
    clock.advance(LONG_MS)
    assert seen == sorted(set(seen))
    assert len(seen) > 1
    assert seen[-1] == 7


def test_a_flush_that_ends_behind_the_close_is_told_to_nobody(clock, partition, write):
    clock.advance(LONG_MS)
    write(partition)
    partition.shell.flushing.begin()
    partition.shell.stop()
    clock.advance(LONG_MS)
    assert (partition.log.flushed_offset, partition.high_watermark) == (1, 0)


def test_a_flush_that_fails_behind_the_close_is_told_to_nobody(clock, disk, partition, write):
    clock.advance(LONG_MS)
    write(partition)
    partition.shell.flushing.begin()
    partition.shell.stop()
    disk.fail_flushes = True
    clock.advance(LONG_MS)
    assert partition.fault is None


def test_what_a_full_disk_refuses_is_tried_again_and_then_writes_are_taken(
    caplog, clock, open_partition, refused_epochs, write
):
    caplog.set_level("INFO")
    partition = open_partition()
    clock.advance(5 * RETRY_FLUSH_MS)
    assert caplog.text.count("takes no writes until this works") == 1
    with pytest.raises(Refused, match="no room") as caught:
        write(partition)
    assert (caught.value.code, partition.is_broken) == (ErrorCode.KAFKA_STORAGE_ERROR, False)
    refused_epochs.undo()
    clock.advance(2 * RETRY_FLUSH_MS)
    assert "takes writes again" in caplog.text
    write(partition)
    clock.advance(LONG_MS)
    assert partition.high_watermark == 1


def test_who_waits_for_what_a_full_disk_refuses_is_told_at_once(open_partition, refused_epochs):
    waiting = open_partition().wait_committed(1)
    with pytest.raises(Refused, match="no room"):
        waiting.result()


def test_a_flush_that_fails_again_before_its_retry_asks_for_no_second_one(clock, open_partition, refused_epochs):
    partition = open_partition()
    retry = partition.shell.flushing._timer
    partition.settings_changed(partition.log.settings)
    clock.advance(2)
    assert partition.shell.flushing._timer is retry


def test_a_change_of_settings_is_the_rule_for_the_next_batch(clock, partition, batch):
    partition.settings_changed(replace(partition.log.settings, max_message_bytes=10))
    sent = batch(b"large")
    with pytest.raises(Refused) as caught:
        partition.append(sent, parse_header(sent))
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
