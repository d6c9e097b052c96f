"""Looking for a seed that breaks something, and saying what it was.

A seed that fails is run again with fewer and fewer of its faults, as long as the same invariant breaks; then once more
with somebody writing down what happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zurau.simulation.cluster.checkers import Violation
from zurau.simulation.cluster.disk_faults import plan_disks
from zurau.simulation.cluster.faults import Fault
from zurau.simulation.cluster.plan import KIND_NAMES, plan
from zurau.simulation.cluster.swarm import Mode, draw
from zurau.simulation.cluster.transcript import Transcript
from zurau.simulation.cluster.world import World

MODES: tuple[Mode, ...] = ("quorum", "isr")
_SHRINK_RUNS = 80


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


def faults_of(mode: Mode, seed: int) -> tuple[Fault, ...]:
    swarm = draw(seed, mode, KIND_NAMES[mode])
    return tuple(sorted((*plan(swarm), *plan_disks(swarm)), key=lambda fault: fault.at_ms))


def run_seed(
    mode: Mode, seed: int, faults: Sequence[Fault] | None = None, transcript: Transcript | None = None
) -> Outcome:
    """One history. Without `faults`, those of the seed."""
    given = faults_of(mode, seed) if faults is None else faults
    world = World(draw(seed, mode, KIND_NAMES[mode]), given, transcript=transcript)
    violation, meaning = None, ""
    try:
        world.run()
    except Violation as found:
        checkers = [*world.session_checkers, *(checker for group in world.groups for checker in group.all_checkers)]
        violation, meaning = found, found.meaning(checkers)
        world.note(f"!! {found}")
    return Outcome(seed, world.event_count, world.acknowledged_count, world.now_ms, violation, meaning)


def run_seeds(mode: Mode, first_seed: int, count: int) -> Iterator[Outcome]:
    for seed in range(first_seed, first_seed + count):
        yield run_seed(mode, seed)


def shrink(mode: Mode, seed: int, invariant: str) -> tuple[int, ...]:
    """The numbers of the faults that are still needed to break this invariant, as far as a few dozen runs can tell."""
    faults = faults_of(mode, seed)
    kept = list(range(len(faults)))
    chunk, runs = max(1, len(kept) // 2), 0
    while runs < _SHRINK_RUNS:
        at, shorter = 0, False
        while at < len(kept) and runs < _SHRINK_RUNS:
            tried = kept[:at] + kept[at + chunk :]
            runs += 1
            outcome = run_seed(mode, seed, [faults[number] for number in tried])
            if outcome.violation is not None and outcome.violation.invariant == invariant:
                kept, shorter = tried, True
            else:
                at += chunk
        if chunk == 1 and not shorter:
            break
        chunk = max(1, chunk // 2)
    return tuple(kept)


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


def report(mode: Mode, seed: int, invariant: str, only: Sequence[int] | None = None) -> Report:
    """Run a failing seed again with as few faults as possible, or with those that are named, and tell what happens."""
    numbers = tuple(only) if only is not None else shrink(mode, seed, invariant)
    drawn = faults_of(mode, seed)
    faults = tuple(drawn[number] for number in numbers)
    transcript = Transcript()
    outcome = run_seed(mode, seed, faults, transcript)
    listed = ",".join(map(str, numbers)) or "none"
    command = f"zurau simulate --mode {mode} --first-seed {seed} --seeds 1 --faults {listed} --transcript -"
    return Report(
        seed,
        str(outcome.violation),
        outcome.meaning,
        str(draw(seed, mode, KIND_NAMES[mode])),
        len(drawn),
        numbers,
        faults,
        tuple(transcript.lines),
        tuple(transcript.turns),
        command,
    )
