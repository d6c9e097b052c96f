"""What is shown while a pipeline starts and runs: on a terminal a line, then a table, that change; elsewhere lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pyspark_zurau.cli.options import Place, open_session
from pyspark_zurau.engine.declaration import Pipeline
from pyspark_zurau.engine.progress import PipelineStatus, QueryStatus, first_status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
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
FIRST_BATCH = "first batch"


class Waiting:
    """What is being waited for before the first result, and how long each part took."""

    def __init__(self) -> None:
        self.done: list[tuple[str, float]] = []
        self._now: tuple[str, float] | None = None

    def begin(self, what: str) -> None:
        self.end()
        self._now = (what, time.monotonic())

    def end(self) -> None:
        if self._now is not None:
            what, since_s = self._now
            self.done.append((what, time.monotonic() - since_s))
            self._now = None

    @property
    def is_over(self) -> bool:
        return self._now is None

    def __str__(self) -> str:
        parts = [f"{what} {seconds:.1f} s" for what, seconds in self.done]
        if self._now is not None:
            what, since_s = self._now
            parts.append(f"{what} ... {time.monotonic() - since_s:.0f} s")
        return ", ".join(parts)


class Screen:
    def __init__(self, pipeline: Pipeline, *, quiet: bool) -> None:
        self._name = pipeline.name
        self._quiet = quiet
        self._live: Live | None = None
        # Where stderr leads now: while Spark starts it leads to Spark's log.
        self._out = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="replace")
        self._waiting = Waiting()
        kinds = {name: sink.kind for name, sink in pipeline.sinks.items()}
        #: The newest that was shown.
        self.status = first_status(pipeline.name, pipeline.checkpoint, kinds)
        self._last_line_s = 0.0
        self._last_rows: dict[str, int] = {}

    def say(self, text: str) -> None:
        if not self._quiet:
            self._out.write(f"{self._name}: {text}\n")

    def wait_for(self, what: str) -> None:
        """From now on this is what takes the time."""
        self._waiting.begin(what)
        if self._live is None:
            took = "".join(f" ({done} took {seconds:.1f} s)" for done, seconds in self._waiting.done[-1:])
            self.say(f"waiting for {what}{took}")

    def show(self, status: PipelineStatus) -> None:
        self.status = status
        if not self._waiting.is_over and any(query.batch_id >= 0 for query in status.queries):
            self._waiting.end()
            total_s = sum(seconds for _, seconds in self._waiting.done)
            self.say(f"first results after {total_s:.1f} s: {self._waiting}")
        if self._live is None and not self._quiet:
            self._print_lines(status)

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(file=self._out, markup=False, highlight=False)
            # Tables of console sinks scroll by above, when they are for the same screen.
            redirect = sys.stdout.isatty()
            self._live = Live(
                console=console, get_renderable=self._draw, redirect_stdout=redirect, refresh_per_second=2
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        self._out.close()

    def _draw(self) -> Any:
        return draw(self.status) if self._waiting.is_over else f"{self._name}: {self._waiting}"

    def _print_lines(self, status: PipelineStatus) -> None:
        """What has changed, but not all the time; and once more at the end."""
        is_over = status.state != "running"
        if not is_over and time.monotonic() - self._last_line_s < LINE_EVERY_S:
            return
        for query in status.queries:
            if query.batch_id >= 0 and self._last_rows.get(query.name) != query.rows:
                self._last_rows[query.name] = query.rows
                self._last_line_s = time.monotonic()
                self.say(line(query))


@contextmanager
def quick_session(pipeline: Pipeline, place: Place) -> Iterator[SparkSession]:
    """A session for a question or two, shown while it starts; what Spark itself says is left out."""
    with ExitStack() as stack:
        with Screen(pipeline, quiet=False) as screen:
            opened = open_session(pipeline, place, log=Path(os.devnull), on_phase=screen.wait_for)
            spark = stack.enter_context(opened)
        yield spark


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
