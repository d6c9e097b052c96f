"""Looking for a seed that breaks something, and saying what it was, in any of the worlds.

A seed that fails is run again with fewer and fewer of its faults, as long as the same invariant breaks; then once more
with somebody writing down what happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

_SHRINK_RUNS = 80


class Violation(Exception):
    """An invariant does not hold. The arguments: which one, and what was seen."""

    def __init__(self, invariant: str, seen: str) -> None:
        super().__init__(f"{invariant}: {seen}")
        self.invariant = invariant


class Fault(Protocol):
    """Something that goes wrong, drawn before anything runs. Prints as what it means."""

    @property
    def at_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one seed."""

    seed: int
    event_count: int
    acknowledged: int
    virtual_ms: float
    violation: Violation | None
    #: What the invariant says that is broken.
    meaning: str = ""
    #: The same whenever the same seed is run; 0 where nobody adds it up.
    trace_sum: int = 0
    #: What happened, if somebody wrote it down; and those of the lines that tell the story in short.
    lines: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """A failure as a person can use it."""

    seed: int
    violation: str
    #: What the invariant says that is broken.
    meaning: str
    world: str
    drawn_count: int
    fault_numbers: tuple[int, ...]
    faults: tuple[Fault, ...]
    transcript: tuple[str, ...]
    #: The lines of it that tell the story in short.
    turns: tuple[str, ...]
    command: str


AnyFault = TypeVar("AnyFault", bound=Fault)


@dataclass(frozen=True)
class Search(Generic[AnyFault]):
    """One kind of world, and how to run a seed of it."""

    #: In words, and as options of `zurau simulate`.
    name: str
    options: str
    faults_of: Callable[[int], tuple[AnyFault, ...]]
    #: Seed, faults (None: those of the seed), and whether somebody writes down what happens.
    run: Callable[[int, Sequence[AnyFault] | None, bool], Outcome]
    world_of: Callable[[int], str]
    #: Every so many seeds one is run twice: the same seed has to give the same history. 0: none is.
    twice_every: int = 0

    def run_seeds(self, first_seed: int, count: int) -> Iterator[Outcome]:
        for seed in range(first_seed, first_seed + count):
            outcome = self.run(seed, None, False)
            if outcome.violation is None and self.twice_every and seed % self.twice_every == 0:
                again = self.run(seed, None, False)
                if again != outcome:
                    seen = f"seed {seed} ended with {outcome.trace_sum:08x}, and then with {again.trace_sum:08x}"
                    violation = Violation("OneSeedOneHistory", seen)
                    yield Outcome(seed, 0, 0, 0, violation, "The same seed gives the same history.")
                    return
            yield outcome

    def shrink(self, seed: int, invariant: str) -> tuple[int, ...]:
        """The numbers of the faults that are still needed to break this, as far as a few dozen runs can tell."""
        faults = self.faults_of(seed)
        kept = list(range(len(faults)))
        chunk, runs = max(1, len(kept) // 2), 0
        while runs < _SHRINK_RUNS:
            at, shorter = 0, False
            while at < len(kept) and runs < _SHRINK_RUNS:
                tried = kept[:at] + kept[at + chunk :]
                runs += 1
                outcome = self.run(seed, [faults[number] for number in tried], False)
                if outcome.violation is not None and outcome.violation.invariant == invariant:
                    kept, shorter = tried, True
                else:
                    at += chunk
            if chunk == 1 and not shorter:
                break
            chunk = max(1, chunk // 2)
        return tuple(kept)

    def report(self, seed: int, invariant: str) -> Report:
        """Run a failing seed again with as few faults as possible, and tell what happens."""
        numbers = self.shrink(seed, invariant)
        drawn = self.faults_of(seed)
        faults = tuple(drawn[number] for number in numbers)
        outcome = self.run(seed, faults, True)
        return Report(
            seed,
            str(outcome.violation),
            outcome.meaning,
            self.world_of(seed),
            len(drawn),
            numbers,
            faults,
            outcome.lines,
            outcome.turns,
            self.command(seed, numbers),
        )

    def command(self, seed: int, numbers: Sequence[int] | None = None) -> str:
        """What shows it again: with all faults of the seed, or some."""
        listed = "" if numbers is None else f" --faults {','.join(map(str, numbers)) or 'none'}"
        return f"zurau simulate {self.options} --first-seed {seed} --seeds 1{listed} --transcript -"
