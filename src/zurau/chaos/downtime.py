"""For how long a client could not write to a partition.

A client that writes all the time is acknowledged every few milliseconds. The longest time between two acknowledgements
around a fault is what the fault cost it: detection, election, metadata and retries together, as its users feel them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple


class Downtime(NamedTuple):
    """Longest times without an acknowledgement, of every client and partition that a fault hit."""

    p50_s: float
    p99_s: float
    max_s: float


def longest_gap_s(acknowledged_s: Sequence[float], begin_s: float, end_s: float) -> float:
    """The longest time without an acknowledgement that touches the time from `begin_s` to `end_s`.

    One that is still open at the end lasts until then: a partition that never comes back must not look well.
    """
    first = max(0, bisect_right(acknowledged_s, begin_s) - 1)
    last = bisect_left(acknowledged_s, end_s)
    moments = [*acknowledged_s[first : last + 1]]
    if not moments or moments[0] > begin_s:
        moments.insert(0, begin_s)
    if moments[-1] < end_s:
        moments.append(end_s)
    return max(after - before for before, after in pairwise(moments))


def summarised(gaps_s: Iterable[float]) -> Downtime | None:
    """None where nothing was measured."""
    ordered = sorted(gaps_s)
    if not ordered:
        return None
    return Downtime(quantile(ordered, 0.5), quantile(ordered, 0.99), ordered[-1])


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all values does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
