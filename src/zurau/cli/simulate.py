"""`zurau simulate`: brokers that have a bad day, from seeds."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zurau.cli.progress import progress

if TYPE_CHECKING:
    from zurau.simulation.searching import Outcome, Search

_SHOWN_TURNS = 30
_SHOWN_LINES = 40


class SimulationMode(StrEnum):
    QUORUM = "quorum"
    ISR = "isr"


def simulate(
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="How many histories.")] = 100,
    first_seed: Annotated[int, typer.Option(min=0, metavar="S", help="The seed of the first one.")] = 0,
    brokers: Annotated[int, typer.Option(min=1, max=5, metavar="N", help="How many brokers.")] = 3,
    mode: Annotated[SimulationMode, typer.Option(help="How the replicas agree.")] = SimulationMode.QUORUM,
    only: Annotated[
        str, typer.Option(metavar="KINDS", help="Draw faults of these kinds alone: LeaderLost,Split.")
    ] = "",
    operators: Annotated[
        bool, typer.Option(help="Operators and members of a group do their work too, and disks change what they hold.")
    ] = True,
    faults: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Only these of the first seed's faults: 1,4,7 or none.")
    ] = None,
    transcript: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what happens with the first seed here; - for stdout.")
    ] = None,
) -> None:
    """Run whole brokers through bad days, from seeds.

    The brokers are the real ones, on simulated clocks, disks, threads and networks, and clients that speak the real
    protocol check what they are told. Power fails, processes are killed, links are cut, disks are slow, full or
    replaced; after every step invariants are checked, and in the end everything has to be whole again.

    The same seed gives the same history. Exits with 1 when an invariant is broken, and says how to see it again.

    \b
    Examples:
      zurau simulate --seeds 1000
      zurau simulate --brokers 1 --seeds 1000
      zurau simulate --mode isr --seeds 1000 --first-seed 5000
      zurau simulate --first-seed 17 --seeds 1 --transcript -
    """
    from zurau.simulation.brokers.faults import KINDS
    from zurau.simulation.brokers.search import Kind
    from zurau.simulation.brokers.search import search as search_of

    kinds = tuple(only.split(",")) if only else ()
    if unknown := [each for each in kinds if each not in KINDS]:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(KINDS)}", param_hint="--only")
    search = search_of(Kind(brokers, mode.value, kinds, is_operated=operators))
    if transcript is not None or faults is not None:
        raise typer.Exit(_tell(search, first_seed, faults, transcript))
    failed = _look(search, first_seed, seeds)
    if failed is not None:
        _show(search, failed)
        raise typer.Exit(1)


def _look(search: Search[Any], first_seed: int, seeds: int) -> Outcome | None:
    """The first seed that fails; says how much was seen until then."""
    began_s, held = time.perf_counter(), []
    failed = None
    with progress(f"simulating {search.name}", seeds) as advance:
        for outcome in search.run_seeds(first_seed, seeds):
            if outcome.violation is not None:
                failed = outcome
                break
            held.append(outcome)
            advance(1)
    seconds = time.perf_counter() - began_s
    events = sum(each.event_count for each in held)
    acknowledged = sum(each.acknowledged for each in held)
    typer.echo(
        f"{len(held)} seeds held in {search.name}: {events:,} events, {acknowledged:,} records "
        f"acknowledged; {len(held) / seconds * 60:.0f} seeds a minute, {events / seconds:,.0f} events/s, "
        f"{sum(each.virtual_ms for each in held) / 1000 / seconds:.0f} times real time"
    )
    return failed


def _show(search: Search[Any], failed: Outcome) -> None:
    """What is left of a failure when everything that it does not need is taken away."""
    assert failed.violation is not None
    typer.echo(f"\nseed {failed.seed} breaks {failed.violation}\nlooking for the faults that it needs ...")
    found = search.report(failed.seed, failed.violation.invariant)
    typer.echo(f"\nbroken    {found.violation}\nthe rule  {found.meaning}\nthe world {found.world}")
    typer.echo(f"\nfaults: {len(found.faults)} of {found.drawn_count} are needed")
    for number, fault in zip(found.fault_numbers, found.faults, strict=True):
        typer.echo(f"  {number:3}  at {fault.at_ms} ms  {fault}")
    typer.echo("\nin short (2b is broker 2 with its second disk; 21@3 is a log up to offset 21, last led by epoch 3):")
    typer.echo("\n".join(found.turns[-_SHOWN_TURNS:]))
    typer.echo(f"\nthe last {_SHOWN_LINES} of {len(found.transcript)} lines:")
    typer.echo("\n".join(found.transcript[-_SHOWN_LINES:]))
    typer.echo(f"\nsee it again: {found.command}")


def _tell(search: Search[Any], seed: int, faults: str | None, path: Path | None) -> int:
    """One seed in words, with all its faults or some. Returns the exit code."""
    drawn = search.faults_of(seed)
    try:
        numbers = range(len(drawn)) if faults is None else [int(each) for each in faults.split(",") if each != "none"]
        given = [drawn[number] for number in numbers]
    except (ValueError, IndexError):
        raise typer.BadParameter(f"seed {seed} has faults 0 to {len(drawn) - 1}", param_hint="--faults") from None
    outcome = search.run(seed, given, True)
    if path is not None:
        text = "\n".join(outcome.lines) + "\n"
        if str(path) == "-":
            typer.echo(text, nl=False)
        else:
            path.write_text(text, encoding="utf-8")
    typer.echo(f"seed {seed}: {outcome.violation or 'nothing broken'}", err=True)
    return 0 if outcome.violation is None else 1
