"""Seeds of whole brokers: see searching.py for how one that fails is made short and told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from zurau.partition import replicas
from zurau.replica.core.settings import ReplicaSettings
from zurau.simulation.brokers.cluster import SimulatedCluster
from zurau.simulation.brokers.faults import KINDS, Fault, plan
from zurau.simulation.brokers.invariants import INVARIANTS
from zurau.simulation.brokers.operations import OPERATIONS
from zurau.simulation.brokers.swarm import Mode, Swarm, draw
from zurau.simulation.brokers.trace import brokers_log_to
from zurau.simulation.constants import constants
from zurau.simulation.searching import Outcome, Search, Violation

TWICE_EVERY = 20


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of world: how many brokers, how the replicas of topics agree, and what goes wrong."""

    brokers: int = 1
    mode: Mode = "quorum"
    #: Kinds of faults that are drawn; none: all.
    only: tuple[str, ...] = ()
    #: In some of them operators do their work, members of a group theirs, and disks change what they hold.
    is_operated: bool = True

    def __str__(self) -> str:
        mode = f" in {self.mode} mode" if self.brokers > 1 else ""
        return f"worlds of {self.brokers} broker{'s' * (self.brokers > 1)}{mode}"

    @property
    def options(self) -> str:
        mode = f" --mode {self.mode}" if self.brokers > 1 else ""
        only = f" --only {','.join(self.only)}" if self.only else ""
        operators = "" if self.is_operated else " --no-operators"
        return f"--brokers {self.brokers}{mode}{only}{operators}"


LONE = Kind()


def swarm_of(kind: Kind, seed: int) -> Swarm:
    several = kind.brokers > 1
    kinds = tuple(name for name, each in KINDS.items() if not each.is_apart and (several or not each.needs_several))
    operations = tuple(OPERATIONS) if kind.brokers > 1 else ()
    swarm = draw(seed, kind.brokers, kind.mode, kinds, operations)
    if kind.only:
        swarm = replace(swarm, fault_kinds=kind.only, operation_kinds=(), has_damage=False)
    return swarm if kind.is_operated else replace(swarm, operation_kinds=(), members=0, has_damage=False)


def faults_of(kind: Kind, seed: int) -> tuple[Fault, ...]:
    return plan(swarm_of(kind, seed), OPERATIONS)


def run_seed(kind: Kind, seed: int, faults: Sequence[Fault] | None = None, keeps_lines: bool = False) -> Outcome:
    """One history. Without `faults`, those of the seed."""
    swarm = swarm_of(kind, seed)
    with constants(swarm.constants), _timing(swarm.timing):
        cluster = SimulatedCluster(
            swarm, plan(swarm, OPERATIONS) if faults is None else faults, keeps_lines=keeps_lines
        )
        with brokers_log_to(cluster.trace, cluster.reported):
            violation = _violation_in(cluster.run)
    if violation is not None:
        cluster.trace.fault(str(violation))
    agenda, trace = cluster.agenda, cluster.trace
    return Outcome(
        seed=seed,
        event_count=agenda.event_count,
        acknowledged=cluster.history.counts["acknowledged"],
        virtual_ms=agenda.now_ms,
        violation=violation,
        meaning="" if violation is None else INVARIANTS[violation.invariant],
        trace_sum=trace.sum,
        lines=tuple(trace.lines),
        turns=tuple(trace.turns),
    )


@contextmanager
def _timing(timing: ReplicaSettings) -> Iterator[None]:
    """Replicas wait for each other so long."""
    usual, replicas.TIMING = replicas.TIMING, timing
    try:
        yield
    finally:
        replicas.TIMING = usual


def search(kind: Kind) -> Search[Fault]:
    return Search(
        name=str(kind),
        options=kind.options,
        faults_of=partial(faults_of, kind),
        run=partial(run_seed, kind),
        world_of=lambda seed: str(swarm_of(kind, seed)),
        twice_every=TWICE_EVERY,
    )


def _violation_in(run: Callable[[], None]) -> Violation | None:
    try:
        run()
    except Violation as violation:
        return violation
    except Exception as error:  # noqa: BLE001 - whatever a broker did not expect itself is a finding
        unexpected = Violation("NothingUnexpected", repr(error))
        unexpected.__cause__ = error
        return unexpected
    return None
