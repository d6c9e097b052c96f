"""What a consumer may be told by a replica.

It reads below the high watermark and nowhere else. A new leader may know a high watermark that is lower than what was
read before it led: an offset between that and the end is right, and has nothing to read yet. To call it out of range
would make a consumer begin anew. Neither may one that has less than the leader say so of an offset that is behind its
end: a follower, or a leader that was deposed. A consumer says in which epoch it read last, so that the latter is
noticed; a leader of that epoch or a later one has everything that was committed then.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from zurau.ids import Epoch, Offset
from zurau.replica.core.log_view import LogView
from zurau.replica.core.roles import Role


class Reading(StrEnum):
    RECORDS = "records"
    NOTHING_YET = "nothing yet"
    OUT_OF_RANGE = "out of range"
    ASK_ANOTHER = "ask another"


class Readable(Protocol):
    @property
    def role(self) -> Role: ...
    @property
    def epoch(self) -> Epoch: ...
    @property
    def high_watermark(self) -> Offset: ...
    @property
    def log(self) -> LogView: ...


def reading(replica: Readable, offset: Offset, known_epoch: Epoch) -> Reading:
    """What there is at `offset` for one who has read in `known_epoch` before."""
    if known_epoch > replica.epoch:
        return Reading.ASK_ANOTHER
    if offset < replica.log.start_offset:
        return Reading.OUT_OF_RANGE
    if offset < replica.high_watermark:
        return Reading.RECORDS
    if offset <= replica.log.end_offset:
        return Reading.NOTHING_YET
    return Reading.OUT_OF_RANGE if replica.role is Role.LEADER else Reading.ASK_ANOTHER
