"""A bug that is planted on purpose, and looking for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from zurau.simulation.cluster.search import Outcome, run_seed
from zurau.simulation.cluster.swarm import Mode


@dataclass(frozen=True)
class Mutation:
    name: str
    mode: Mode
    #: Seeds within which it has to be found: a few times as many as it took.
    seeds: int
    patches: tuple[tuple[Any, str, Any], ...]
    #: Where looking for it need not take long: a seed a little before the first that finds it.
    near: int = 0

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


def find(mutation: Mutation, first_seed: int = 0) -> tuple[int, Outcome] | None:
    """How many seeds it took, and what came of the last."""
    with mutation.planted():
        for count in range(1, mutation.seeds + 1):
            outcome = run_seed(mutation.mode, first_seed + count - 1)
            if outcome.violation is not None:
                return count, outcome
    return None


def quorum(name: str, seeds: int, *patches: tuple[Any, str, Any], near: int = 0) -> Mutation:
    return Mutation(name, "quorum", seeds, patches, near)


def in_sync(name: str, seeds: int, *patches: tuple[Any, str, Any], near: int = 0) -> Mutation:
    return Mutation(name, "isr", seeds, patches, near)
