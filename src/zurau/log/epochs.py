"""Where each leader's reign begins in the log.

With it a follower finds the point up to which its log and a leader's are the same (KIP-101): the end of the largest
epoch that both know. A reign may have no records yet; its entry then begins at the end of the log, and two entries
may begin at the same offset. The file is Kafka's leader-epoch-checkpoint: a version, a count, and lines of epoch and
start offset.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from zurau.errors import CorruptData
from zurau.ids import Epoch, Offset

FILE_NAME = "leader-epoch-checkpoint"
_VERSION = "0"
NO_EPOCH: Epoch = -1
NO_OFFSET: Offset = -1


class EpochEntry(NamedTuple):
    epoch: Epoch
    start_offset: Offset


class EpochCache:
    """The epochs of one log. In memory; the log writes it down with its flushes."""

    __slots__ = ("change_count", "entries")

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        #: Invariant: epochs rise, start offsets do not fall.
        self.entries: list[EpochEntry] = list(entries)
        #: Counts changes, so that the log knows whether what it wrote down is still true.
        self.change_count = 0

    @property
    def last_epoch(self) -> Epoch:
        return self.entries[-1].epoch if self.entries else NO_EPOCH

    def assign(self, epoch: Epoch, start_offset: Offset) -> None:
        """From `start_offset` on it is `epoch` that reigns. Says nothing new if it does already."""
        if epoch <= self.last_epoch:
            assert epoch == self.last_epoch, f"epoch {epoch} cannot follow {self.last_epoch}"
            return
        assert not self.entries or start_offset >= self.entries[-1].start_offset
        self.entries.append(EpochEntry(epoch, start_offset))
        self.change_count += 1

    def epoch_of(self, offset: Offset) -> Epoch:
        """The epoch in which the record at `offset` was, or will be, written."""
        following = bisect_right(self.entries, offset, key=lambda entry: entry.start_offset)
        return self.entries[following - 1].epoch if following else NO_EPOCH

    def end_offset_for(self, epoch: Epoch, log_end: Offset) -> tuple[Epoch, Offset]:
        """The largest known epoch up to `epoch` and the offset where it ends; (-1, -1) when that cannot be said."""
        if epoch == NO_EPOCH or epoch > self.last_epoch:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.last_epoch:
            return epoch, log_end
        following = bisect_right(self.entries, epoch, key=lambda entry: entry.epoch)
        known = self.entries[following - 1].epoch if following else epoch
        return known, self.entries[following].start_offset if following < len(self.entries) else log_end

    def cut_end(self, offset: Offset) -> None:
        """Forget reigns that begin behind `offset`; one that begins exactly there is still common ground."""
        self._keep([entry for entry in self.entries if entry.start_offset <= offset])

    def cut_start(self, offset: Offset) -> None:
        """Forget reigns that ended before `offset`; the one that holds it begins there now."""
        covering = [entry for entry in self.entries if entry.start_offset <= offset]
        if covering:
            later = self.entries[len(covering) :]
            self._keep([EpochEntry(covering[-1].epoch, offset), *later])

    def content(self) -> bytes:
        lines = [_VERSION, str(len(self.entries)), *(f"{epoch} {start}" for epoch, start in self.entries)]
        return ("\n".join(lines) + "\n").encode()

    def _keep(self, entries: list[EpochEntry]) -> None:
        if entries != self.entries:
            self.entries = entries
            self.change_count += 1


def parse_epochs(content: bytes) -> EpochCache:
    """Read what `content` wrote, or Kafka did. Raises `CorruptData`."""
    try:
        version, count, *lines = content.decode().splitlines()
        entries = [EpochEntry(*map(int, line.split())) for line in lines]
    except (ValueError, TypeError):
        raise CorruptData(f"{FILE_NAME} is not a list of epochs and offsets") from None
    rising = all(a.epoch < b.epoch and a.start_offset <= b.start_offset for a, b in pairwise(entries))
    if version != _VERSION or count != str(len(entries)) or not rising:
        raise CorruptData(f"{FILE_NAME} is incomplete or out of order")
    return EpochCache(entries)
