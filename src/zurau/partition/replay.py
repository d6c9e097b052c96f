"""Reading a machine's records back: a snapshot of its state, then its log from there on, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from zurau.errors import CorruptData
from zurau.ids import Offset
from zurau.machines.machine import StateRecord
from zurau.partition.partition import Partition
from zurau.partition.snapshots import Snapshot
from zurau.records.batch import BatchHeader, check_crc, iter_batches
from zurau.records.record import iter_records
from zurau.settings import MIB

READ_BYTES = 1 * MIB


class ReplayedBatch(NamedTuple):
    """What a machine decided in one go, and the offset after it."""

    records: Sequence[StateRecord]
    next_offset: Offset


def replay(partition: Partition, snapshot: Snapshot, upto_offset: Offset) -> Iterator[ReplayedBatch]:
    """Everything below an offset. Blocks for the disk. Raises `CorruptData` rather than to give anything else."""
    start_offset = partition.log.start_offset
    if not snapshot.records:
        yield from replay_log(partition, start_offset, upto_offset)
        return
    if not start_offset <= snapshot.offset <= upto_offset:
        raise CorruptData(
            f"{partition.name} holds offsets {start_offset} to {upto_offset}, which its snapshot of offset "
            f"{snapshot.offset} does not fit; restore its directory from a copy"
        )
    yield ReplayedBatch(snapshot.records, snapshot.offset)
    yield from replay_log(partition, snapshot.offset, upto_offset)


def replay_log(partition: Partition, from_offset: Offset, upto_offset: Offset) -> Iterator[ReplayedBatch]:
    """As `replay`, from an offset on."""
    while from_offset < upto_offset:
        chunk = partition.log.read(from_offset, READ_BYTES, upto_offset, may_block=True)
        for header, batch in iter_batches(memoryview(chunk)):
            yield ReplayedBatch(_records(partition, batch, header), header.next_offset)
            from_offset = header.next_offset


def _records(partition: Partition, batch: memoryview, header: BatchHeader) -> list[StateRecord]:
    try:
        if not check_crc(batch, header):
            raise CorruptData("its checksum is wrong")
        return [StateRecord(record.key, record.value) for record in iter_records(batch)]
    except CorruptData as fault:
        raise damaged(partition, header.base_offset, fault) from fault


def damaged(partition: Partition, offset: Offset, fault: Exception) -> CorruptData:
    """What an operator is told of a machine's log that cannot be replayed."""
    return CorruptData(
        f"{partition.name} is damaged at offset {offset} ({fault}); restore its directory from a copy, or start with "
        "another --dir"
    )
