"""What a log is made of: batches, which take up offsets, and epoch marks, which do not (`zurau/epochs.py`)."""

from __future__ import annotations

import msgspec

from zurau.epochs import EpochMark
from zurau.ids import Epoch, Offset
from zurau.replica.core.identity import ReplicaId


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Records that travel together. Their bytes mean nothing here.

    Compaction may remove batches, and records from within one: what is left begins at `base_offset` and takes up
    `count` offsets, however many records are still there.
    """

    epoch: Epoch
    base_offset: Offset
    count: int
    data: bytes | memoryview
    #: Set when the batch changes who votes.
    voters: tuple[ReplicaId, ...] | None = None

    @property
    def next_offset(self) -> Offset:
        return self.base_offset + self.count

    def __str__(self) -> str:
        what = "voters" if self.voters is not None else "batch"
        return f"{what} {self.base_offset}..{self.next_offset - 1}@{self.epoch}"


Item = EpochMark | Batch
