"""Every history of three replicas with few events: the rules of epoch marks, checked without chance.

The model is small on purpose: an election, a write and a fetch are one step each, everything is flushed at once, and a
leader that was deposed goes on until it hears of it. What it decides with is the replica core's own: positions, marks,
divergence, cutting, merging, counting. All states within some bounds are visited.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import NamedTuple

import pytest

from zurau.epochs import EpochHistory, EpochMark, Position
from zurau.replica.log_view import LogView
from zurau.replica.position import Batch, Item
from zurau.replica.progress import NOWHERE, Progress
from zurau.replica.quorum import committed_offset, majority

REPLICAS = range(3)
#: The state space is much larger than this when a rule is missing; a violation comes long before.
STATES_MAX = 400_000


class One(NamedTuple):
    """One replica: its log, the last epoch it has heard of, and, if it leads, what it knows of the others."""

    items: tuple[Item, ...] = ()
    epoch: int = 0
    high_watermark: int = 0
    #: Positions as the others said them; None when it does not lead.
    known: tuple[Position, ...] | None = None

    def log(self) -> LogView:
        return log_of(self.items)

    @property
    def position(self) -> Position:
        return position_of(self.items)


def log_of(items: tuple[Item, ...]) -> LogView:
    log = LogView()
    for item in items:
        log.append(item)
    return log


@cache
def position_of(items: tuple[Item, ...]) -> Position:
    return log_of(items).position


class Bounds(NamedTuple):
    epochs: int
    records: int


class World(NamedTuple):
    bounds: Bounds
    ones: tuple[One, ...]
    #: The longest log that anybody has committed.
    committed: tuple[Item, ...] = ()

    def having(self, number: int, one: One) -> World:
        return self._replace(ones=(*self.ones[:number], one, *self.ones[number + 1 :]))


class Broken(Exception):
    """A committed record is not what it was."""


def batches(items: tuple[Item, ...], upto: int) -> tuple[Item, ...]:
    return tuple(item for item in items if isinstance(item, Batch) and item.next_offset <= upto)


def count(world: World, number: int) -> World:
    """A leader looks at what it knows, and raises its high watermark by the core's own rule."""
    one = world.ones[number]
    assert one.known is not None
    stored = []
    for other in REPLICAS:
        progress = Progress(0)
        progress.position = one.position if other == number else one.known[other]
        stored.append(progress.stored_in(one.epoch))
    offset = committed_offset(stored)
    if offset <= one.high_watermark:
        return world
    committed = batches(one.items, offset)
    shorter = min(len(committed), len(world.committed))
    if committed[:shorter] != world.committed[:shorter]:
        raise Broken(f"{number} commits {committed} and {world.committed} was")
    longer = max(committed, world.committed, key=len)
    return world.having(number, one._replace(high_watermark=offset))._replace(committed=longer)


def elections(world: World) -> Iterator[World]:
    """Anybody whose log is as far as those of a majority, in a new epoch that this majority had not heard of."""
    for number in REPLICAS:
        mine = world.ones[number].position
        for others in combinations([each for each in REPLICAS if each != number], majority(len(REPLICAS)) - 1):
            if any(world.ones[other].position > mine for other in others):
                continue
            epoch = max(world.ones[each].epoch for each in (number, *others)) + 1
            if epoch > world.bounds.epochs:
                continue
            one = world.ones[number]
            mark = EpochMark(epoch, one.position.offset)
            leader = One((*one.items, mark), epoch, one.high_watermark, (NOWHERE,) * len(REPLICAS))
            if batches(leader.items, len(world.committed)) != world.committed:
                raise Broken(f"{number} leads in {epoch} without {world.committed}")
            after = world.having(number, leader)
            for other in others:
                after = after.having(other, world.ones[other]._replace(epoch=epoch, known=None))
            yield after


def writes(world: World) -> Iterator[World]:
    for number, one in enumerate(world.ones):
        if one.known is not None and one.position.offset < world.bounds.records:
            batch = Batch(one.epoch, one.position.offset, 1, b"")
            yield world.having(number, one._replace(items=(*one.items, batch)))


def fetches(world: World) -> Iterator[World]:
    """A follower asks a leader whose epoch is not older than its own, and stores one record of the answer, or cuts."""
    for number, leader in enumerate(world.ones):
        for other, follower in enumerate(world.ones):
            if leader.known is None or number == other or follower.epoch > leader.epoch:
                continue
            log, theirs = leader.log(), follower.log()
            diverging = log.where_diverging(theirs.position)
            if diverging is not None:
                point = theirs.point_of(diverging)
                if point.offset < follower.high_watermark:
                    raise Broken(f"{other} cuts at {point} below {follower.high_watermark}")
                kept = cut(follower.items, point)
                yield world.having(other, One(kept, leader.epoch, follower.high_watermark))
                continue
            known = (*leader.known[:other], theirs.position, *leader.known[other + 1 :])
            after = count(world.having(number, leader._replace(known=known)), number)
            high_watermark = after.ones[number].high_watermark
            found = [item for item in leader.items if isinstance(item, Batch) and item.base_offset == theirs.end_offset]
            new = theirs.merge(log.epochs.after(theirs.position.epoch), found)
            yield after.having(other, follower._replace(epoch=leader.epoch, known=None))  # the answer is lost
            upto = max(follower.high_watermark, min(high_watermark, theirs.end_offset))
            yield after.having(other, One((*follower.items, *new), leader.epoch, upto))


def cut(items: tuple[Item, ...], point: Position) -> tuple[Item, ...]:
    """With the core's own rule for marks."""
    epochs = EpochHistory([item for item in items if isinstance(item, EpochMark)])
    epochs.truncate(point)
    return tuple(
        item
        for item in items
        if (item in epochs.marks if isinstance(item, EpochMark) else item.next_offset <= point.offset)
    )


def explore(epochs: int, records: int, ones: tuple[One, ...] = (One(),) * len(REPLICAS)) -> int:
    """Visit every state that can come of the first one; returns how many there are."""
    first = World(Bounds(epochs, records), ones)
    seen, waiting = {first}, [first]
    while waiting:
        world = waiting.pop()
        for step in (elections, writes, fetches):
            for after in step(world):
                if after not in seen and len(seen) < STATES_MAX:
                    seen.add(after)
                    waiting.append(after)
    return len(seen)


#: What `HYPOTHESIS_PROFILE=long` has time for: 190,000 states.
LONG = [(3, 2)] if os.environ.get("HYPOTHESIS_PROFILE") == "long" else []


@pytest.mark.timeout(3600)  # the long one takes its minutes
@pytest.mark.parametrize(("epochs", "records"), [(2, 2), (3, 1), *LONG])
def test_no_committed_record_is_ever_lost_or_replaced(epochs, records):
    assert 10_000 < explore(epochs, records) < STATES_MAX


def test_counting_what_older_epochs_wrote_loses_records(monkeypatch):
    monkeypatch.setattr(Progress, "stored_in", lambda self, epoch: self.position.offset)
    two_records = (EpochMark(1, 0), Batch(1, 0, 1, b""), Batch(1, 1, 1, b""))
    figure_8 = (One(two_records, 1), One((EpochMark(2, 0),), 2), One((), 2))
    with pytest.raises(Broken):
        explore(4, 2, figure_8)


def test_comparing_logs_by_offset_only_loses_records(monkeypatch):
    monkeypatch.setattr(
        LogView, "where_diverging", lambda self, theirs: None if theirs.offset <= self.end_offset else self.position
    )
    with pytest.raises((Broken, AssertionError)):
        explore(2, 2)
