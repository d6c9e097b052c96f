"""The state of a machine at one offset, in a file beside its log, so that the log before it may go.

A snapshot is a short log: record batches, in a file that is named as Kafka names it, by the offset and the epoch where
it stands. Its first record says how many follow, so that a file that was cut short is known for what it is; the batches
have their checksums. A new one is written beside the last one, and the log goes up to the last one only: should the new
one be damaged, the one before it (or nothing) and the log from there on give the same state.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from zurau.errors import CorruptData
from zurau.ids import Epoch, Offset
from zurau.machines.machine import StateRecord
from zurau.ports import Disk
from zurau.records.batch import check_crc, iter_batches
from zurau.records.builder import NewRecord, build_batch
from zurau.records.record import iter_records

log = logging.getLogger("zurau.snapshots")

#: Records in a batch of a snapshot.
RECORDS_A_BATCH = 500
KEPT = 2
_COUNT_KEY = b"records"
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotId(NamedTuple):
    """Everything below `offset` is in it; `epoch` is that of the last record below."""

    offset: Offset
    epoch: Epoch

    @property
    def file_name(self) -> str:
        return f"{self.offset:020}-{self.epoch:010}.checkpoint"


def list_snapshots(disk: Disk, directory: str) -> list[SnapshotId]:
    """Oldest first."""
    names = filter(None, map(_NAME.fullmatch, disk.list_directory(directory)))
    return sorted(SnapshotId(int(name[1]), int(name[2])) for name in names)


class Snapshot(NamedTuple):
    offset: Offset = 0
    records: Sequence[StateRecord] = ()


NO_SNAPSHOT = Snapshot()


def load_newest(disk: Disk, directory: str, log_start_offset: Offset, log_end_offset: Offset) -> Snapshot:
    """The newest snapshot that is whole; an empty one if there are none and the log tells it all. One that is ahead of
    the log was fetched, and a crash came before the log was begun anew behind it.

    Raises `CorruptData` when neither is so.
    """
    for found in reversed(list_snapshots(disk, directory)):
        if found.offset > log_end_offset:
            continue
        path = f"{directory}/{found.file_name}"
        try:
            return Snapshot(found.offset, parse(disk.read_file(path) or b""))
        except CorruptData as fault:
            log.error("%s is damaged (%s); what is older serves instead", path, fault)  # noqa: TRY400 - it says all
    if log_start_offset > 0:
        raise CorruptData(
            f"{directory} begins at offset {log_start_offset}, and no whole snapshot tells what came before; "
            "restore its newest .checkpoint file from a copy"
        )
    return NO_SNAPSHOT


def write(disk: Disk, directory: str, snapshot: SnapshotId, records: Iterable[StateRecord]) -> Offset:
    """Write a snapshot; returns up to where the log may go: the one before it. Blocks."""
    store(disk, directory, snapshot, _content(list(records)))
    found = list_snapshots(disk, directory)
    return found[-KEPT].offset if len(found) >= KEPT else 0


def store(disk: Disk, directory: str, snapshot: SnapshotId, content: bytes) -> None:
    """All of it or nothing. Blocks."""
    disk.replace_file(f"{directory}/{snapshot.file_name}", content)


def remove_old(disk: Disk, directory: str, log_start_offset: Offset) -> None:
    """Those from which the log does not go on any more: one that stands where the log begins stays."""
    for old in list_snapshots(disk, directory):
        if old.offset < log_start_offset:
            disk.remove(f"{directory}/{old.file_name}")


def _content(records: list[StateRecord]) -> bytes:
    content = bytearray()
    records = [StateRecord(_COUNT_KEY, b"%d" % len(records)), *records]
    for first in range(0, len(records), RECORDS_A_BATCH):
        some = records[first : first + RECORDS_A_BATCH]
        content += build_batch([NewRecord(record.key, record.value) for record in some], base_offset=first)
    return bytes(content)


def parse(content: bytes) -> list[StateRecord]:
    """The records of a snapshot. Raises `CorruptData` if it is not what was written."""
    records: list[StateRecord] = []
    for header, batch in iter_batches(memoryview(content)):
        if not check_crc(batch, header):
            raise CorruptData(f"the checksum of the batch at {header.base_offset} is wrong")
        records += [StateRecord(record.key, record.value) for record in iter_records(batch)]
    if not records or records[0] != (_COUNT_KEY, b"%d" % (len(records) - 1)):
        raise CorruptData("it is not whole")
    return records[1:]
