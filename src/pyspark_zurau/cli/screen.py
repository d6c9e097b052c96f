"""What is shown while a pipeline runs: a table that changes, on a terminal; elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pyspark_zurau.engine.declaration import Pipeline
from pyspark_zurau.engine.progress import PipelineStatus, QueryStatus
from zurau.cli.output import say

if TYPE_CHECKING:
    from rich.live import Live

COLUMNS = (
    "sink",
    "kind",
    "rows",
    "rows_per_s",
    "lag",
    "batch",
    "batch_ms",
    "late",
    "state_rows",
    "state_mb",
    "watermark",
)
LINE_EVERY_S = 10.0


class Screen:
    def __init__(self, pipeline: Pipeline, *, quiet: bool) -> None:
        self._name = pipeline.name
        self._quiet = quiet
        self._live: Live | None = None
        self._last_line_s = 0.0
        self._last_rows: dict[str, int] = {}

    def say(self, text: str) -> None:
        if not self._quiet:
            say(f"{self._name}: {text}")

    def show(self, status: PipelineStatus) -> None:
        if self._live is not None:
            self._live.update(draw(status))
        elif not self._quiet:
            self._print_lines(status)

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, markup=False, highlight=False)
            # Tables of console sinks scroll by above, when they are for the same screen.
            self._live = Live(console=console, redirect_stdout=sys.stdout.isatty(), refresh_per_second=2)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def _print_lines(self, status: PipelineStatus) -> None:
        """What has changed, but not all the time; and once more at the end."""
        is_over = status.state != "running"
        if not is_over and time.monotonic() - self._last_line_s < LINE_EVERY_S:
            return
        for query in status.queries:
            if query.batch_id >= 0 and self._last_rows.get(query.name) != query.rows:
                self._last_rows[query.name] = query.rows
                self._last_line_s = time.monotonic()
                say(f"{self._name}: {line(query)}")


def line(query: QueryStatus) -> str:
    lag = "" if query.lag is None else f", lag {query.lag}"
    told = "".join(f"; {note}" for note in notes(query))
    return (
        f"{query.name}: {query.rows} rows read, {query.rows_per_s:.0f} rows/s{lag}, batch {query.batch_id}"
        f" in {query.batch_ms} ms{told}"
    )


def notes(query: QueryStatus) -> list[str]:
    """What a person should look at: dead letters, and rows that came too late."""
    told = [str(query.judged)] if query.judged else []
    if query.late_rows:
        told.append(
            f"at least {query.late_rows} rows came later than the watermark and are not in the result; see its delay"
        )
    return told


def row(query: QueryStatus) -> dict[str, Any]:
    return {
        "sink": query.name,
        "kind": query.kind,
        "rows": query.rows,
        "rows_per_s": round(query.rows_per_s),
        "lag": query.lag,
        "batch": query.batch_id if query.batch_id >= 0 else None,
        "batch_ms": query.batch_ms,
        "late": query.late_rows,
        "state_rows": query.state_rows,
        "state_mb": round(query.state_bytes / 1e6, 1),
        "watermark": query.watermark,
    }


def draw(status: PipelineStatus) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table

    title = f"{status.pipeline}: {status.state}" + (f" ({status.reason})" if status.reason else "")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for column in COLUMNS:
        table.add_column(column.replace("_", " "), justify="left" if column in {"sink", "kind"} else "right")
    for query in status.queries:
        table.add_row(*("-" if value is None else str(value) for value in row(query).values()))
    return Group(table, *(f"{query.name}: {note}" for query in status.queries for note in notes(query)))
