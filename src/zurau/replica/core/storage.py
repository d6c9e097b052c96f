"""What a log has to offer to whoever carries out a replica's effects on it.

The core touches no log: it knows positions (`log_view.py`) and says effects (`effects.py`). A shell carries these out
on a real log; this protocol names what that log has to do. Each clause is one that records get lost by. Offsets are
those of batches: `Append` and `Truncate` never split one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from zurau.epochs import EpochHistory, EpochMark, Position
from zurau.ids import Offset
from zurau.replica.core.items import Batch, Item


class Storage(Protocol):
    @property
    def start_offset(self) -> Offset:
        """Durable: a log never begins earlier after a restart than it did before."""

    @property
    def position(self) -> Position:
        """Where it ends. The epoch is that of the last mark, or of the mark that a snapshot or retention left."""

    @property
    def flushed(self) -> Position:
        """How far it was flushed, as stored apart from the log, with every flush, and lowered before a truncation: a
        log that ends before it at a start has lost something that was promised (`recovery.py`)."""

    @property
    def epochs(self) -> EpochHistory:
        """The marks, as stored: a mark without records behind it is found again at a start like any other."""

    def append(self, items: Sequence[Item]) -> None:
        """In their order, marks among batches. A batch may begin behind the end, where compaction removed what was
        between. All or nothing is not needed: after a crash any beginning of what was appended may be left."""

    def truncate(self, point: Position) -> None:
        """Drop marks of later epochs and everything from the offset on, also while a flush is under way: what that
        flush says afterwards covers only what is left."""

    def flush(self) -> None:
        """Everything that was appended and truncated before this call survives a power failure when it returns. A
        flush that fails is the end of this replica: it is not tried again."""

    def advance_start(self, offset: Offset) -> None:
        """Remove what is below. The epoch of the last record before it stays."""

    def restart(self, mark: EpochMark) -> None:
        """Replace everything by an empty log that begins here; durable when it returns."""

    def read(self, from_offset: Offset, upto_offset: Offset, max_bytes: int) -> Sequence[Batch]:
        """Whole batches from there on, below `upto_offset`: at least one if there is any, however large. Every batch
        that is returned matches its checksum. Compaction keeps the last batch of a log, perhaps without records, so
        that there is always one between an offset and the end."""
