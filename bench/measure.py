"""Measuring: what a process has used, repeats that take turns, and tables that say ratios.

Machines are never quiet, so no number stands alone: subjects are measured in turns (a, b, c, a, b, c, ...), each cell
shows the best and the median of its repeats, and what counts is the ratio between two cells of the same run.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

#: Linux names the CPU clock of another process by its id and this.
_CPUCLOCK_SCHED = 2
console = Console(highlight=False, width=120)


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process and all its threads have used since it began, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)


def tree_cpu_s(pid: int) -> float:
    """The same for a process and all that it has started and that still run, to a hundredth of a second."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        found[int(file.parent.name)] = (int(fields[1]), int(fields[11]) + int(fields[12]))
    family = {pid}
    while more := {child for child, (parent, _) in found.items() if parent in family} - family:
        family |= more
    return sum(found[member][1] for member in family if member in found) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Memory that a process really holds; pages shared with others count in full."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(pid)


@dataclass(frozen=True)
class Spread:
    """Repeats of one measurement."""

    values: Sequence[float]
    is_better_low: bool = True

    @property
    def best(self) -> float:
        return min(self.values) if self.is_better_low else max(self.values)

    @property
    def median(self) -> float:
        return statistics.median(self.values)


def in_turns(subjects: Sequence[str], measure: Callable[[str], float], repeats: int) -> dict[str, Spread]:
    """Measure every subject once, then every subject again, so that a slow minute hits them all."""
    values: dict[str, list[float]] = {subject: [] for subject in subjects}
    for _ in range(repeats):
        for subject in subjects:
            values[subject].append(measure(subject))
    return {subject: Spread(found) for subject, found in values.items()}


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def show(title: str, columns: Sequence[str], rows: Mapping[str, Sequence[object]], note: str = "") -> None:
    """Print one table; the first column is the subject."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    for name, cells in rows.items():
        table.add_row(name, *(cell if isinstance(cell, str) else f"{cell:,.3g}" for cell in cells))
    console.print(table)
    if note:
        console.print(f"[dim]{note}[/]")
    console.print()


def ratio(first: float, second: float) -> str:
    return f"{first / second:.2f}x" if second else "-"
