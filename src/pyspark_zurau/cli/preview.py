"""`zurau pipeline preview`: rows of each source and step, from the newest records."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyspark_zurau.cli.options import (
    DEFAULT_MASTER,
    BootstrapOption,
    Master,
    OnHost,
    PipelineFile,
    Place,
    Remote,
    SetOption,
    open_pipeline,
)
from pyspark_zurau.cli.screen import quick_session
from pyspark_zurau.engine.problems import Problems, did_you_mean
from zurau.cli.options import Format, FormatOption
from zurau.cli.output import say, show_json, show_rows
from zurau.errors import SettingsError, ZurauError

if TYPE_CHECKING:
    from pyspark_zurau.engine.preview import Preview

CELL_CHARACTERS = 60


def preview(
    file: PipelineFile,
    step: Annotated[str | None, typer.Argument(metavar="[STEP]", help="Only this source or step.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-l", min=1, help="How many rows of each.")] = 20,
    records: Annotated[int, typer.Option("--records", "-n", min=1, help="How many of the newest to read.")] = 1000,
    set_: SetOption = None,
    bootstrap: BootstrapOption = None,
    master: Master = DEFAULT_MASTER,
    remote: Remote = None,
    on_host: OnHost = False,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show what each source and step of a pipeline makes of the newest records.

    Nothing is written, and no checkpoint is touched. Steps see only these records, so counts are of the sample.

    \b
    Examples:
      zurau pipeline preview orders.toml
      zurau pipeline preview orders.toml result --limit 5
      zurau pipeline preview logs --records 10000 --format json
    """
    from pyspark_zurau.engine.check import check_files
    from pyspark_zurau.engine.preview import preview as show

    pipeline = open_pipeline(file, set_, bootstrap)
    known = [*pipeline.sources, *pipeline.steps]
    if step is not None and step not in known:
        raise SettingsError(f"{pipeline.file}: there is no source or step {step!r}{did_you_mean(step, known)}")
    problems = Problems(str(pipeline.file))
    check_files(pipeline, problems)
    problems.raise_any()
    shown = []
    with quick_session(pipeline, Place(master, remote, on_host)) as spark:
        for found in show(spark, pipeline, step, limit=limit, records=records):
            shown.append(found)
            if form is not Format.JSON:
                print_preview(found, form)
    if form is Format.JSON:
        show_json([{"name": each.name, "rows": [_plain(row) for row in each.rows]} for each in shown])
    failed = [f"{each.name}: {each.reason}" for each in shown if each.reason]
    if failed:
        raise ZurauError("; ".join(failed))


def print_preview(found: Preview, form: Format) -> None:
    judged = f": {found.judged}" if found.judged else ""
    if found.reason is None:
        rows = [{column: _cell(value) for column, value in row.items()} for row in found.rows]
        show_rows(rows, found.columns, form, title=f"{found.kind} {found.name}")
        say(f"{found.kind} {found.name}{judged or f': {len(rows)} rows'}\n")


def _cell(value: Any) -> str | None:
    if value is None:
        return None
    text = value.isoformat(sep=" ") if isinstance(value, dt.datetime) else str(_plain(value))
    return text if len(text) <= CELL_CHARACTERS else f"{text[: CELL_CHARACTERS - 1]}…"


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="replace")
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
