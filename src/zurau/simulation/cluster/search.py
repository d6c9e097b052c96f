"""Seeds of clusters of replicas: see searching.py for how one that fails is made short and told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from zurau.simulation.cluster.checkers import meaning_of
from zurau.simulation.cluster.disk_faults import plan_disks
from zurau.simulation.cluster.faults import Fault
from zurau.simulation.cluster.plan import KIND_NAMES, plan
from zurau.simulation.cluster.swarm import Mode, draw
from zurau.simulation.cluster.transcript import Transcript
from zurau.simulation.cluster.world import World
from zurau.simulation.searching import Outcome, Search, Violation

MODES: tuple[Mode, ...] = ("quorum", "isr")


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
        violation, meaning = found, meaning_of(found, checkers)
        world.note(f"!! {found}")
    return Outcome(seed, world.event_count, world.acknowledged_count, world.now_ms, violation, meaning)


def search(mode: Mode) -> Search[Fault]:
    def run(seed: int, faults: Sequence[Fault] | None, keeps_lines: bool) -> Outcome:
        if not keeps_lines:
            return run_seed(mode, seed, faults)
        transcript = Transcript()
        outcome = run_seed(mode, seed, faults, transcript)
        return replace(outcome, lines=tuple(transcript.lines), turns=tuple(transcript.turns))

    return Search(
        name=f"{mode} mode",
        options=f"--mode {mode}",
        faults_of=partial(faults_of, mode),
        run=run,
        world_of=lambda seed: str(draw(seed, mode, KIND_NAMES[mode])),
    )
