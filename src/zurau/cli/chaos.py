"""`zurau chaos`: a cluster on this machine that has a bad day, and whether it kept its word."""

from __future__ import annotations

import shutil
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zurau.cli.options import Format
from zurau.cli.output import say, show_json, show_rows
from zurau.errors import SettingsError
from zurau.settings import did_you_mean

if TYPE_CHECKING:
    from zurau.chaos.experiment import Outcome, Plan
    from zurau.chaos.faults import Fault

_TOLD_VIOLATIONS = 10


class ReplicationMode(StrEnum):
    QUORUM = "quorum"
    ISR = "isr"


def chaos(
    minutes: Annotated[float, typer.Option(min=0.01, metavar="N", help="How long faults go on.")] = 5,
    seed: Annotated[int, typer.Option(metavar="S", help="Which faults, whom they hit and how long they last.")] = 0,
    brokers: Annotated[int, typer.Option(min=2, max=9, metavar="N", help="Brokers, a process each.")] = 3,
    mode: Annotated[ReplicationMode, typer.Option(help="How replicas agree.")] = ReplicationMode.QUORUM,
    fault: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this fault; may be given several times.")
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Partitions that are written to.")] = 6,
    directory: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="Where data and logs go, and stay. [a temporary one]")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to print the result.")] = Format.TABLE,
) -> None:
    """Break a local cluster of real brokers under load.

    Brokers are killed, paused, cut off from each other, restarted; their disks are full or gone. Meanwhile producers
    and consumers, ours and librdkafka if it is installed, use them all the time, and all that they are told is checked.

    The table says of each fault how often it happened, how many writes were acknowledged, lost and duplicated, and for
    how long a client could not write to a partition that it hit.

    Exits with 1 when a promise was broken, keeps everything, and says how to run it again.

    \b
    Examples:
      zurau chaos --minutes 15 --seed 7
      zurau chaos --minutes 5 --mode isr --brokers 5
      zurau chaos --fault 'leader killed' --minutes 3
    """
    from zurau.chaos.experiment import Plan

    plan = Plan(
        minutes=minutes,
        seed=seed,
        brokers=brokers,
        mode=mode.value,
        partitions=partitions,
        faults=_chosen(fault or []),
    )
    where = directory or Path(tempfile.mkdtemp(prefix="zurau-chaos-"))
    outcome = _run(plan, where)
    _show(outcome, form)
    if outcome.held:
        if directory is None:
            shutil.rmtree(where, ignore_errors=True)
        return
    for violation in outcome.violations[:_TOLD_VIOLATIONS]:
        say(f"broken: {violation}")
    say(f"{len(outcome.violations)} violations; data and logs are in {where}")
    say(f"run it again: {_command(plan, fault or [])}")
    raise typer.Exit(1)


def _run(plan: Plan, where: Path) -> Outcome:
    from zurau.chaos.experiment import Experiment
    from zurau.testing.cluster import Cluster

    with Cluster(plan.brokers, dir=str(where), log_level="info", flush="fsync") as cluster:
        return Experiment(plan, cluster, say).run()


def _show(outcome: Outcome, form: Format) -> None:
    from zurau.chaos.experiment import as_json
    from zurau.chaos.report import ALL, COLUMNS, DEATHS, deaths, downtime_by_client, rows

    if form is Format.JSON:
        show_json(as_json(outcome) | {"table": rows(outcome)})
        return
    show_rows(rows(outcome), COLUMNS, form)
    counts = outcome.counts
    say(
        f"{counts['acknowledged']:,} records acknowledged, {counts['read']:,} read, {counts['commits']:,} commits and "
        f"{counts['assignments']:,} assignments in {outcome.seconds:.0f} s"
    )
    for what, injections in ((DEATHS, deaths(outcome)), (ALL, outcome.injections)):
        for kind, downtime in downtime_by_client(injections).items():
            times = f"p50 {downtime.p50_s:.2f} s, p99 {downtime.p99_s:.2f} s, max {downtime.max_s:.2f} s"
            say(f"without writes, {what}, {kind}: {times}")


def _chosen(names: list[str]) -> tuple[Fault, ...]:
    from zurau.chaos.faults import FAULTS

    known = {fault.name: fault for fault in FAULTS}
    for name in names:
        if name not in known:
            raise SettingsError(f"there is no fault {name!r}{did_you_mean(name, known)}; there are: {', '.join(known)}")
    return tuple(known[name] for name in names) or FAULTS


def _command(plan: Plan, names: list[str]) -> str:
    chosen = "".join(f" --fault '{name}'" for name in names)
    return (
        f"zurau chaos --minutes {plan.minutes:g} --seed {plan.seed} --brokers {plan.brokers} --mode {plan.mode}"
        f" --partitions {plan.partitions}{chosen}"
    )
