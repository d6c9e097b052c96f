"""`zurau cluster recover`: a majority of the voters is gone for ever, and those who are left go on without them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zurau.cli.options import Format, FormatOption, Yes, confirm
from zurau.cli.output import counted, say, show_rows

if TYPE_CHECKING:
    from zurau.broker.lost_majority import Recovery
    from zurau.ids import BrokerId
    from zurau.replica.core.membership import Voters

COLUMNS = ("log", "voters", "left")
WARNING = """
What brokers {gone} acknowledged, and this broker had not stored yet, is lost. It may not be much, and nobody can tell.
What this broker stored and nobody had acknowledged counts as written.
Do this on every broker that is left, with the same list, while none of them runs. Never start brokers {gone} again with
their old disks: they could elect leaders of their own, and there would be two clusters. With empty disks they may come
back at once, and are filled again."""


def recover(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The --dir of a broker that is left.")],
    gone: Annotated[str, typer.Option(metavar="IDS", help="The brokers that never come back: 1,2")],
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without this it is only shown.")] = False,
    yes: Yes = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Go on when a majority of those who vote is gone for ever, disks and all.

    As long as any of them may come back with its disk, bring it back instead: then nothing is lost. The broker must be
    stopped. Shows which logs have lost their majority; with --execute, and when you say so, only those vote on them who
    are left. The journal as it was stays beside the new one.

    \b
    Examples:
      zurau cluster recover zurau-data --gone 1,2
      zurau cluster recover zurau-data --gone 1,2 --execute
    """
    from zurau.broker.lost_majority import carry_out, plan_recovery
    from zurau.errors import SettingsError
    from zurau.node.disk import RealDisk
    from zurau.node.run import DirectoryInUse, lock_directory

    if not directory.is_dir():
        raise typer.BadParameter(f"there is no directory {directory}; give the --dir of a broker")
    brokers = _brokers(gone)
    try:
        lock = lock_directory(directory)
    except DirectoryInUse as error:
        raise SettingsError(f"a broker is running on {directory}; stop it first, then recover") from error
    with lock:
        disk = RealDisk(directory)
        plan = plan_recovery(disk, brokers)
        _show(plan, form)
        if not plan.lost:
            say(f"all of the {counted(plan.log_count, 'log')} of broker {plan.broker} have a majority without {gone}")
            return
        say(WARNING.format(gone=gone))
        if not execute:
            say("nothing is changed yet: --execute does it")
            return
        confirm(f"Let those who are left vote alone on {counted(len(plan.lost), 'log')}?", yes=yes)
        carry_out(disk, plan)
    say(f"broker {plan.broker} can be started; see `zurau cluster health` then")


def _brokers(text: str) -> frozenset[BrokerId]:
    from zurau.ids import BrokerId

    words = text.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise typer.BadParameter(f"{text!r} is no list of broker ids, as 1,2", param_hint="--gone")
    return frozenset(BrokerId(int(word)) for word in words)


def _show(plan: Recovery, form: Format) -> None:
    rows = [
        {"log": each.name, "voters": _ids(each.voters), "left": _ids(each.left) or "nobody: it stays as it is"}
        for each in plan.lost
    ]
    show_rows(rows, COLUMNS, form, title=f"broker {plan.broker}: {counted(len(rows), 'log')} without a majority")


def _ids(voters: Voters) -> str:
    return ", ".join(str(voter.broker) for voter in voters)


def add_to(app: typer.Typer) -> None:
    app.command()(recover)
