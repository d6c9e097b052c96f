"""A bug that is planted on purpose, and looking for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from unittest.mock import patch

from broker_story import ROOMS, run_with

from zurau.simulation.brokers import search as brokers
from zurau.simulation.cluster.search import run_seed
from zurau.simulation.cluster.swarm import Mode
from zurau.simulation.constants import draw

Where = Mode | Literal["broker", "brokers", "quorum of brokers", "isr of brokers"]
KINDS: dict[str, brokers.Kind] = {
    "brokers": brokers.LONE,
    "quorum of brokers": brokers.Kind(3, "quorum"),
    "isr of brokers": brokers.Kind(3, "isr"),
}


@dataclass(frozen=True)
class Mutation:
    name: str
    #: Where it is looked for: a cluster's replicas in one of their modes, a broker that is asked one thing after the
    #: other, or whole brokers in a world of their own, one or three.
    mode: Where
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


def find(mutation: Mutation, first_seed: int = 0) -> tuple[int, str] | None:
    """How many seeds it took, and what noticed it."""
    with mutation.planted():
        for count in range(1, mutation.seeds + 1):
            noticed_by = _run(mutation.mode, first_seed + count - 1)
            if noticed_by:
                return count, noticed_by
    return None


def _run(mode: Where, seed: int) -> str:
    """What noticed that something is wrong, if anything did."""
    if mode in KINDS:
        found = brokers.run_seed(KINDS[mode], seed).violation
        return "" if found is None else found.invariant
    if mode in ("quorum", "isr"):
        violation = run_seed(mode, seed).violation
        return "" if violation is None else violation.invariant
    try:
        run_with(seed, draw(seed, *ROOMS))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:60]}"
    return ""


def quorum(name: str, seeds: int, *patches: tuple[Any, str, Any], near: int = 0) -> Mutation:
    return Mutation(name, "quorum", seeds, patches, near)


def in_sync(name: str, seeds: int, *patches: tuple[Any, str, Any], near: int = 0) -> Mutation:
    return Mutation(name, "isr", seeds, patches, near)


def in_a_broker(name: str, seeds: int, *patches: tuple[Any, str, Any], near: int = 0) -> Mutation:
    return Mutation(name, "broker", seeds, patches, near)


def in_a_quorum(name: str, seeds: int, *patches: tuple[Any, str, Any], near: int = 0) -> Mutation:
    return Mutation(f"{name}, of real brokers", "quorum of brokers", seeds, patches, near)


def in_a_set(name: str, seeds: int, *patches: tuple[Any, str, Any], near: int = 0) -> Mutation:
    return Mutation(f"{name}, of real brokers", "isr of brokers", seeds, patches, near)


def in_brokers(name: str, seeds: int, *patches: tuple[Any, str, Any], near: int = 0) -> Mutation:
    return Mutation(name, "brokers", seeds, patches, near)
