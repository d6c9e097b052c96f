"""Rows on the screen, a table for each batch, for looking at what a pipeline does."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from pyspark.sql import DataFrame

from pyspark_zurau.engine.sinks.staging import pass_over


@dataclass(frozen=True)
class ConsoleBatches:
    title: str
    rows: int

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        found = [tuple(row) for row in frame.take(self.rows + 1)]
        if found:
            cells = [["" if cell is None else str(cell) for cell in row] for row in found[: self.rows]]
            more = f", the first {self.rows} rows" if len(found) > self.rows else ""
            if more:  # the rest has to be computed too
                pass_over(frame)
            _draw(f"{self.title}: batch {batch_id}{more}", frame.columns, cells)


def _draw(title: str, columns: list[str], rows: list[list[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else 160
    console = Console(file=sys.stdout, markup=False, highlight=False, width=width)
    console.print(title, style="bold")
    console.print(table)
    sys.stdout.flush()
