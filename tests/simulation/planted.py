"""A bug that is planted on purpose, and looking for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from broker_story import ROOMS, run_with

from zurau.simulation.brokers.search import LONE, Kind, run_seed
from zurau.simulation.brokers.swarm import Mode
from zurau.simulation.constants import draw

Patch = tuple[Any, str, Any]
#: One broker that is asked one thing after the other: see broker_story.py.
STORY = "a broker"


@dataclass(frozen=True)
class Mutation:
    name: str
    #: The worlds in which seeds find it, or `STORY`; or else the test that fails with it.
    where: Kind | str
    patches: tuple[Patch, ...]
    #: Seeds within which it has to be found: a few times as many as it took.
    seeds: int = 0
    #: Where looking for it need not take long: a seed a little before the first that finds it.
    near: int = 0

    @property
    def is_held(self) -> bool:
        """By a test, and not by seeds."""
        return isinstance(self.where, str) and self.where != STORY

    @contextmanager
    def planted(self) -> Iterator[None]:
        undo = [patch.object(target, attribute, new) for target, attribute, new in self.patches]
        for each in undo:
            each.start()
        try:
            yield
        finally:
            for each in undo:
                each.stop()


def find(mutation: Mutation, first_seed: int = 0) -> tuple[int, str] | None:
    """How many seeds it took, and what noticed it."""
    with mutation.planted():
        for count in range(1, mutation.seeds + 1):
            noticed_by = _run(mutation.where, first_seed + count - 1)
            if noticed_by:
                return count, noticed_by
    return None


def _run(where: Kind | str, seed: int) -> str:
    """What noticed that something is wrong, if anything did."""
    if isinstance(where, Kind):
        found = run_seed(where, seed).violation
        return "" if found is None else found.invariant
    try:
        run_with(seed, draw(seed, *ROOMS))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:60]}"
    return ""


def in_a_broker(name: str, seeds: int, *patches: Patch, near: int = 0) -> Mutation:
    return Mutation(name, STORY, patches, seeds, near)


def in_one(name: str, seeds: int, *patches: Patch, near: int = 0) -> Mutation:
    return Mutation(name, LONE, patches, seeds, near)


def in_a_quorum(
    name: str, seeds: int, *patches: Patch, near: int = 0, brokers: int = 3, only: tuple[str, ...] = ()
) -> Mutation:
    return Mutation(name, Kind(brokers, "quorum", only, is_operated=False), patches, seeds, near)


def in_sync(
    name: str, seeds: int, *patches: Patch, near: int = 0, brokers: int = 3, only: tuple[str, ...] = ()
) -> Mutation:
    return Mutation(name, Kind(brokers, "isr", only, is_operated=False), patches, seeds, near)


def in_operated(name: str, mode: Mode, seeds: int, *patches: Patch, near: int = 0) -> Mutation:
    """Where operators do their work, and members of a group theirs."""
    return Mutation(name, Kind(3, mode), patches, seeds, near)


def held(name: str, test: str, *patches: Patch) -> Mutation:
    """`test`: below tests/, as pytest names it."""
    return Mutation(name, test, patches)
