"""What a run has shown, as a table: one row for each fault, and one for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zurau.chaos.downtime import Downtime, summarised
from zurau.chaos.experiment import Injection, Outcome
from zurau.chaos.faults import FAULTS

COLUMNS = ("fault", "times", "acknowledged", "lost", "duplicated", "p50", "p99", "max")
#: The same times for each kind of client; shown where there are several.
ALL = "all faults"
#: One row for all faults in which one broker dies that led something: how soon others lead.
DEATHS = "a leader's death"
_DEATHS = frozenset(fault.name for fault in FAULTS if fault.is_death)


def rows(outcome: Outcome) -> list[dict[str, Any]]:
    names = sorted({each.fault for each in outcome.injections})
    found = [_row(name, [each for each in outcome.injections if each.fault == name], outcome) for name in names]
    if any(name in _DEATHS for name in names):
        found.append(_row(DEATHS, deaths(outcome), outcome))
    total = _row(ALL, outcome.injections, outcome)
    # What was written, lost or doubled between two faults is in no other row.
    total |= {
        "acknowledged": outcome.counts["acknowledged"],
        "lost": outcome.counts["lost"],
        "duplicated": outcome.counts["NoneTwice"],
    }
    return [*found, total]


def deaths(outcome: Outcome) -> list[Injection]:
    return [each for each in outcome.injections if each.fault in _DEATHS]


def downtime_by_client(injections: Iterable[Injection]) -> dict[str, Downtime]:
    """Of every kind of client."""
    gaps_s: dict[str, list[float]] = {}
    for injection in injections:
        for kind, gaps in injection.gaps_s.items():
            gaps_s.setdefault(kind, []).extend(gaps)
    return {kind: found for kind, gaps in gaps_s.items() if (found := summarised(gaps)) is not None}


def _row(name: str, injections: list[Injection], outcome: Outcome) -> dict[str, Any]:
    downtime = summarised(gap for each in injections for gaps in each.gaps_s.values() for gap in gaps)
    return {
        "fault": name,
        "times": len(injections),
        "acknowledged": sum(each.acknowledged for each in injections),
        "lost": sum(each.began_s <= at_s < each.ended_s for at_s in outcome.lost_at_s for each in injections),
        "duplicated": sum(each.duplicated for each in injections),
        "p50": _seconds(downtime and downtime.p50_s),
        "p99": _seconds(downtime and downtime.p99_s),
        "max": _seconds(downtime and downtime.max_s),
    }


def _seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f} s"
