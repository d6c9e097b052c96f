"""Who votes, as the log says it.

A change is a batch that carries the whole new set. It holds from the moment it is in the log, committed or not, and is
truncated with the log. Sets that differ by one member have majorities that overlap, so one change may follow another
only when that is committed; and a leader may make one only after its own mark is committed, or two leaders could each
make a change that overlaps with the old set and not with the other's (Ongaro's correction to his thesis, section 4.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from zurau.ids import Offset
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.items import Batch, Item

Voters = tuple[ReplicaId, ...]


class VoterChange(NamedTuple):
    offset: Offset
    voters: Voters


class Membership:
    """The voters at the end of the log, and at the offsets where they changed."""

    __slots__ = ("changes", "first", "voters")

    def __init__(self, first: Iterable[ReplicaId], changes: Iterable[VoterChange] = ()) -> None:
        #: Who voted before any change that the log still holds.
        self.first: Voters = tuple(sorted(first))
        self.changes: list[VoterChange] = list(changes)
        #: Who votes at the end of the log.
        self.voters: Voters = self._last()

    def _last(self) -> Voters:
        return self.changes[-1].voters if self.changes else self.first

    @property
    def before_last_change(self) -> Voters:
        return self.changes[-2].voters if len(self.changes) > 1 else self.first

    @property
    def history(self) -> tuple[VoterChange, ...]:
        """All that is known, to be made again from: the first voters as a change before all offsets."""
        return (VoterChange(-1, self.first), *self.changes)

    @classmethod
    def of(cls, history: Sequence[VoterChange], end_offset: Offset) -> Membership:
        """As `history` said, of a log that ends at `end_offset`: what a crash took from its end changed nothing."""
        first, *changes = history
        return cls(first.voters, [change for change in changes if change.offset < end_offset])

    def appended(self, items: Iterable[Item]) -> None:
        for item in items:
            if isinstance(item, Batch) and item.voters is not None:
                self.changes.append(VoterChange(item.base_offset, item.voters))
                self.voters = item.voters

    def truncate(self, offset: Offset) -> None:
        self.changes = [change for change in self.changes if change.offset < offset]
        self.voters = self._last()

    def advance_start(self, offset: Offset) -> None:
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
        self.first = self.voters = voters
        self.changes = []


def next_change(
    voters: Voters, wanted: Iterable[ReplicaId], is_caught_up: Callable[[ReplicaId], bool]
) -> tuple[ReplicaId | None, ReplicaId | None] | None:
    """The next step from `voters` to those that are wanted: whom to add, or whom to remove; None while there is nothing
    to do, or somebody has to catch up first.

    Dead voters leave before their replacements join: beside a dead voter, a new one raises the number that a majority
    needs. A set of 2 or 4 survives no more failures than one of 1 or 3 and stops at more, so voters grow in pairs: the
    first joins when the second could. Only who wants 2 or 4 gets them. And nobody leaves whom the rest needs for a
    majority, because one of them is dead: it would have to commit the change, and all that follows, without him.
    """
    target = sorted(wanted)
    extra = [voter for voter in voters if voter not in target]
    missing = [replica for replica in target if replica not in voters]
    ready = [replica for replica in missing if is_caught_up(replica)]
    gone = [voter for voter in extra if not is_caught_up(voter)]
    if gone and (ready or not missing):
        return None, gone[0]
    if missing:
        begins_a_pair = not extra and len(voters) % 2 == 1 and len(missing) > 1
        return (ready[0], None) if len(ready) > begins_a_pair else None
    leaving = next((each for each in extra if could_commit([v for v in voters if v != each], is_caught_up)), None)
    return None if leaving is None else (None, leaving)


def could_commit(voters: Sequence[ReplicaId], is_caught_up: Callable[[ReplicaId], bool]) -> bool:
    """Whether a majority of them is in step."""
    return sum(map(is_caught_up, voters)) * 2 > len(voters)
