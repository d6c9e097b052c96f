"""Where a log ends, and what it is made of.

A replicated log is a sequence of two kinds of items: *batches*, which take up offsets, and *epoch marks*, which do not.
A new leader's first act is to write its mark. A mark is log data in every other respect: it is fetched, flushed and cut
off in its order among the batches. That is what lets offsets start at 0 and have no gaps, although every leader needs
something of its own to commit.

    mark 1 | batch 0..2 | batch 3 | mark 2 | mark 4 | batch 4..5        ends at Position(epoch=4, offset=6)

A position is the last mark's epoch and the end offset. Positions compare by epoch first: of two logs, the one with the
larger position holds everything that is committed if either does (Raft's "at least as up-to-date", section 5.4.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from zurau.ids import Epoch, Offset
from zurau.replica.identity import ReplicaId

NO_EPOCH: Epoch = -1


class Position(NamedTuple):
    epoch: Epoch
    offset: Offset

    def __str__(self) -> str:
        return f"{self.offset}@{self.epoch}"


class EpochMark(NamedTuple):
    """From this offset on it is this epoch that writes. It has no width."""

    epoch: Epoch
    start_offset: Offset

    def __str__(self) -> str:
        return f"mark {self.epoch} at {self.start_offset}"


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that travel together. Their bytes mean nothing here."""

    epoch: Epoch
    base_offset: Offset
    count: int
    data: bytes
    #: Set when the batch changes who votes.
    voters: tuple[ReplicaId, ...] | None = None

    @property
    def next_offset(self) -> Offset:
        return self.base_offset + self.count

    def __str__(self) -> str:
        what = "voters" if self.voters is not None else "batch"
        return f"{what} {self.base_offset}..{self.next_offset - 1}@{self.epoch}"


Item = EpochMark | Batch
