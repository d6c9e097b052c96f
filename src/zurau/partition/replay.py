"""Reading a machine's records back: a snapshot of its state, then its log from there on.

Nothing else than what was written is applied: damage ends a replay with an error. Where a repair gave damage up, the
log has a gap. Records behind it may build on records that were in it; they mean nothing any more and are passed over,
with a line in the broker's log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from zurau.errors import CorruptData, ProtocolViolation, ReleaseTooOld
from zurau.ids import Offset
from zurau.machines.machine import StateRecord
from zurau.partition.partition import Partition
from zurau.partition.snapshots import Snapshot
from zurau.ports import Turns, Workers, WouldBlock
from zurau.records.batch import BatchHeader, check_crc, iter_batches
from zurau.records.record import iter_records
from zurau.settings import KIB, MIB

log = logging.getLogger("zurau.replay")

#: Read at once. Any value is right: a batch comes whole.
READ_BYTES = 1 * MIB
#: Applied before others get their turn.
TURN_BYTES = 64 * KIB


class Replay:
    """Invariant: everything below `next_offset` was applied, or is in a gap."""

    def __init__(self, partition: Partition, apply: Callable[[StateRecord, Offset], None]) -> None:
        self._partition = partition
        self._apply = apply
        self.next_offset: Offset = partition.log.start_offset
        #: Stretches of offsets that the log does not hold (any more): the first one, and the one after the last.
        self.gaps: list[tuple[Offset, Offset]] = [(0, self.next_offset)] if self.next_offset else []

    def restore(self, snapshot: Snapshot) -> None:
        """Begin with a snapshot; an empty one says nothing."""
        if not snapshot.records:
            return
        stored = self._partition.log
        if not stored.start_offset <= snapshot.offset <= stored.end_offset:
            raise CorruptData(
                f"{self._partition.name} holds offsets {stored.start_offset} to {stored.end_offset}, which its "
                f"snapshot of offset {snapshot.offset} does not fit; restore its directory from a copy"
            )
        for record in snapshot.records:
            self._apply(record, snapshot.offset - 1)
        self.next_offset, self.gaps = snapshot.offset, []

    def catch_up(self, upto_offset: Offset) -> None:
        """Apply everything below `upto_offset`. Blocks for the disk. Raises `CorruptData`."""
        while self.next_offset < upto_offset:
            self._apply_chunk(self._read(upto_offset), upto_offset)

    async def catch_up_in_turns(self, upto_offset: Offset, workers: Workers, turns: Turns) -> None:
        """The same, without blocking the loop: what is not in memory is read by a worker."""
        while self.next_offset < upto_offset:
            try:
                chunk = self._read(upto_offset, TURN_BYTES, may_block=False)
            except WouldBlock:
                chunk = await workers.run(partial(self._read, upto_offset))
            self._apply_chunk(chunk, upto_offset)
            if turns.is_over():
                await turns.next()

    def _read(self, upto_offset: Offset, max_bytes: int | None = None, *, may_block: bool = True) -> bytes:
        try:
            return self._partition.log.read(
                self.next_offset, READ_BYTES if max_bytes is None else max_bytes, upto_offset, may_block=may_block
            )
        except CorruptData as damage:
            raise self._damaged(self.next_offset, damage) from damage

    def _apply_chunk(self, chunk: bytes, upto_offset: Offset) -> None:
        if not chunk:  # nothing is left behind the last batch
            self._move_to(upto_offset)
        for header, batch in iter_batches(memoryview(chunk)):
            # A batch without records is what a repair leaves in the place of what was given up.
            self._move_to(header.base_offset if header.record_count else header.next_offset)
            if not header.is_control:  # those are about replicas
                self._apply_batch(batch, header)
            self.next_offset = header.next_offset

    def _move_to(self, offset: Offset) -> None:
        if offset > self.next_offset:
            self.gaps.append((self.next_offset, offset))
            self.next_offset = offset

    def _apply_batch(self, batch: memoryview, header: BatchHeader) -> None:
        try:
            if not check_crc(batch, header):
                raise CorruptData("its checksum is wrong")
            for record in iter_records(batch):
                self._apply_stored(StateRecord(record.key, record.value), record.offset)
        except ReleaseTooOld:
            raise  # nothing is damaged
        except (CorruptData, ProtocolViolation, LookupError) as fault:
            raise self._damaged(header.base_offset, fault) from fault

    def _apply_stored(self, record: StateRecord, offset: Offset) -> None:
        try:
            self._apply(record, offset)
        except LookupError:
            if not self.gaps:
                raise
            log.warning("%s: the record at offset %d means nothing without a lost one", self._partition.name, offset)

    def _damaged(self, offset: Offset, fault: Exception) -> CorruptData:
        return CorruptData(
            f"{self._partition.name} is damaged at offset {offset} ({fault}); look at it with `zurau log check`, and "
            "restore its directory from a copy or give up what is damaged with `zurau log repair`"
        )
