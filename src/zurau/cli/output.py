"""Printing results: a table for people, JSON and CSV for programs.

On a terminal tables are drawn with rich; anywhere else they are plain text in columns, and rich is not even imported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from zurau.cli.options import Format

Row = Mapping[str, Any]
GAP = "  "


def show_rows(rows: Sequence[Row], columns: Sequence[str], form: Format, *, title: str | None = None) -> None:
    """Print rows; the columns are keys of the rows, and the keys of the JSON objects."""
    if form is Format.JSON:
        show_json([{column: row[column] for column in columns} for row in rows])
    elif form is Format.CSV:
        _show_csv(rows, columns)
    elif sys.stdout.isatty():
        _show_rich(rows, columns, title)
    else:
        _show_plain(rows, columns, title)


def show_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def say(text: str) -> None:
    """A remark for whoever watches; results go to stdout instead."""
    sys.stderr.write(text + "\n")


def counted(count: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(str(part) for part in value)
    return str(value)


def _heading(column: str) -> str:
    return column.replace("_", " ")


def _show_csv(rows: Sequence[Row], columns: Sequence[str]) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if row[column] is None else _cell(row[column]) for column in columns])


def _show_plain(rows: Sequence[Row], columns: Sequence[str], title: str | None) -> None:
    cells = [[_heading(column).upper() for column in columns]]
    cells += [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(len(line[position]) for line in cells) for position in range(len(columns))]
    if title:
        sys.stdout.write(title + "\n")
    for line in cells:
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        sys.stdout.write(GAP.join(padded).rstrip() + "\n")


def _show_rich(rows: Sequence[Row], columns: Sequence[str], title: str | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        is_number = any(type(row[column]) is int for row in rows)
        table.add_column(_heading(column), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row[column]) for column in columns))
    console = Console(markup=False, highlight=False)
    if title:
        console.print(title, style="bold")
    console.print(table)
