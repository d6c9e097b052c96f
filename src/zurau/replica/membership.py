"""Who votes, as the log says it.

A change is a batch that carries the whole new set. It holds from the moment it is in the log, committed or not, and is
cut off with the log. Sets that differ by one member have majorities that overlap, so one change may follow another only
when that is committed; and a leader may make one only after its own mark is committed, or two leaders could each make
a change that overlaps with the old set and not with the other's (Ongaro's correction to his thesis, section 4.1).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from zurau.ids import Offset
from zurau.replica.identity import ReplicaId
from zurau.replica.position import Batch, Item

Voters = tuple[ReplicaId, ...]


class VoterChange(NamedTuple):
    offset: Offset
    voters: Voters


class Membership:
    """The voters at the end of the log, and at the offsets where they changed."""

    __slots__ = ("changes", "first")

    def __init__(self, first: Iterable[ReplicaId], changes: Iterable[VoterChange] = ()) -> None:
        #: Who voted before any change that the log still holds.
        self.first: Voters = tuple(sorted(first))
        self.changes: list[VoterChange] = list(changes)

    @property
    def voters(self) -> Voters:
        return self.changes[-1].voters if self.changes else self.first

    def appended(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, Batch) and item.voters is not None:
                self.changes.append(VoterChange(item.base_offset, item.voters))

    def cut_end(self, offset: Offset) -> None:
        self.changes = [change for change in self.changes if change.offset < offset]

    def cut_start(self, offset: Offset) -> None:
        gone = [change for change in self.changes if change.offset < offset]
        if gone:
            self.first = gone[-1].voters
            self.changes = self.changes[len(gone) :]

    def is_settled(self, high_watermark: Offset) -> bool:
        """The last change is committed."""
        return not self.changes or self.changes[-1].offset < high_watermark

    def with_change(self, add: ReplicaId | None, remove: ReplicaId | None) -> Voters:
        assert (add is None) != (remove is None), "one change at a time"
        kept = [voter for voter in self.voters if voter != remove]
        return tuple(sorted([*kept, add] if add is not None and add not in kept else kept))

    def restart(self, voters: Voters) -> None:
        """The log begins anew behind a snapshot."""
        self.first = voters
        self.changes = []
