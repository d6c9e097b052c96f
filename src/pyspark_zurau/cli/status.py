"""`zurau pipeline status`: how far a pipeline is, told by any process that can see its checkpoint."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from pyspark_zurau.cli.options import BootstrapOption, SetOption, open_pipeline
from pyspark_zurau.cli.screen import COLUMNS, draw, notes, row
from pyspark_zurau.engine.known_checkpoints import known_checkpoints
from pyspark_zurau.engine.progress import RUNNING, PipelineStatus, read_status
from pyspark_zurau.engine.read import state_directory
from zurau.cli.options import Format, FormatOption
from zurau.cli.output import say, show_json, show_rows
from zurau.errors import SettingsError

WATCH_EVERY_S = 1.0


def status(
    name: Annotated[
        str | None, typer.Argument(metavar="FILE|NAME", help="A pipeline. Default: all that have run here.")
    ] = None,
    checkpoint: Annotated[str | None, typer.Option("--checkpoint", metavar="DIR", help="Its checkpoint.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on showing it, until Ctrl-C or its end.")] = False,
    set_: SetOption = None,
    bootstrap: BootstrapOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show how far a pipeline is: rows per second, lag, batch time, state.

    Ends with 1 when a pipeline has failed, or was lost.

    \b
    Examples:
      zurau pipeline status
      zurau pipeline status logs --watch
      zurau pipeline status --checkpoint /data/checkpoints/logs --format json
    """
    places = _find(name, checkpoint, set_, bootstrap)
    if watch:
        _watch(places, form)
    found = [status for place in places if (status := read_status(place))]
    if not watch:
        _show(found, form)
    raise typer.Exit(int(any(status.state in {"failed", "lost"} for status in found)))


def _find(name: str | None, checkpoint: str | None, set_: list[str] | None, bootstrap: str | None) -> list[str]:
    if checkpoint is None and name is None:
        return known_checkpoints()
    place = checkpoint
    if place is None:
        assert name is not None
        known = state_directory() / name
        place = str(known) if known.is_dir() else open_pipeline(name, set_, bootstrap).checkpoint
    if read_status(place) is None:
        raise SettingsError(f"no pipeline has run with the checkpoint {Path(place).absolute()}; see --checkpoint")
    return [place]


def _show(found: list[PipelineStatus], form: Format) -> None:
    if form is Format.JSON:
        show_json([status.to_json() for status in found])
        return
    rows = [
        {"pipeline": status.pipeline, "state": status.state, **row(query)}
        for status in found
        for query in status.queries
    ]
    show_rows(rows, ("pipeline", "state", *COLUMNS), form)
    for status in found:
        for query in status.queries:
            for note in notes(query):
                say(f"{status.pipeline}: {query.name}: {note}")
        if status.reason:
            say(f"{status.pipeline}: {status.reason}")


def _watch(places: list[str], form: Format) -> None:
    from rich.console import Console, Group
    from rich.live import Live

    with Live(console=Console(markup=False, highlight=False), refresh_per_second=2) as live:
        while True:
            found = [status for place in places if (status := read_status(place))]
            if form is Format.JSON:
                show_json([status.to_json() for status in found])
            else:
                live.update(Group(*(draw(status) for status in found)))
            if not any(status.state == RUNNING for status in found):
                return
            time.sleep(WATCH_EVERY_S)
