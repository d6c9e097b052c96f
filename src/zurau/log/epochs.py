"""The epoch marks of a log as a file, and as clients ask for them.

The file is Kafka's leader-epoch-checkpoint: a version, a count, and lines of epoch and start offset. What the marks
mean is said in `zurau/epochs.py`.
"""

from __future__ import annotations

from itertools import pairwise

from zurau.epochs import NO_EPOCH, EpochHistory, EpochMark
from zurau.errors import CorruptData
from zurau.ids import Epoch, Offset

FILE_NAME = "leader-epoch-checkpoint"
_VERSION = "0"
NO_OFFSET: Offset = -1


def end_offset_for(epochs: EpochHistory, epoch: Epoch, log_end: Offset) -> tuple[Epoch, Offset]:
    """What OffsetForLeaderEpoch answers: the largest known epoch up to `epoch` and the offset where it ends; (-1, -1)
    when that cannot be said."""
    if epoch == NO_EPOCH or epoch > epochs.last:
        return NO_EPOCH, NO_OFFSET
    if not epochs.marks:
        return epoch, log_end
    known, end = epochs.ending(epoch, log_end)
    return (epoch if known == NO_EPOCH else known), end


def encode_epochs(epochs: EpochHistory) -> bytes:
    lines = [_VERSION, str(len(epochs.marks)), *(f"{mark.epoch} {mark.start_offset}" for mark in epochs.marks)]
    return ("\n".join(lines) + "\n").encode()


def parse_epochs(content: bytes) -> EpochHistory:
    """Read what `encode_epochs` wrote, or Kafka did. Raises `CorruptData`."""
    try:
        version, count, *lines = content.decode().splitlines()
        marks = [EpochMark(*map(int, line.split())) for line in lines]
    except (ValueError, TypeError):
        raise CorruptData(f"{FILE_NAME} is not a list of epochs and offsets") from None
    rising = all(a.epoch < b.epoch and a.start_offset <= b.start_offset for a, b in pairwise(marks))
    if version != _VERSION or count != str(len(marks)) or not rising or any(min(mark) < 0 for mark in marks[:1]):
        raise CorruptData(f"{FILE_NAME} is incomplete or out of order")
    return EpochHistory(marks)
