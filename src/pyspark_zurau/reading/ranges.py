"""Sums with offsets: how much of a backlog one trigger takes, and how a range is divided among tasks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

from pyspark_zurau.options.offsets import Offsets
from zurau.ids import Offset, TopicPartition


class Range(NamedTuple):
    """What one task reads: the offsets from `start` to before `end`."""

    partition: TopicPartition
    start: Offset
    end: Offset

    @property
    def size(self) -> int:
        return self.end - self.start


def backlog(start: Offsets, end: Offsets) -> dict[TopicPartition, int]:
    """How many offsets lie between; partitions with nothing are left out."""
    return {
        partition: offset - start[partition]
        for partition, offset in end.items()
        if partition in start and offset > start[partition]
    }


def take_share(limit: int, start: Offsets, latest: Offsets) -> dict[TopicPartition, Offset]:
    """An end for each partition such that together they take about `limit`, each in proportion to its backlog.

    A partition whose share is less than one gets one, so that none starves.
    """
    sizes = backlog(start, latest)
    total = sum(sizes.values())
    ends = dict(latest)
    for partition, size in sizes.items():
        share = limit * size / total
        ends[partition] = min(latest[partition], start[partition] + (math.ceil(share) if share < 1 else int(share)))
    return ends


def divide(ranges: list[Range], *, min_partitions: int | None, max_records: int | None) -> list[Range]:
    """Ranges for the tasks: none larger than `max_records`, then as many as about `min_partitions`; empty ones go."""
    divided = [
        part
        for whole in ranges
        if whole.size > 0
        for part in _cut(whole, math.ceil(whole.size / max_records) if max_records else 1)
    ]
    if min_partitions is None or len(divided) >= min_partitions:
        return divided
    counts = _proportional(divided, min_partitions)
    return [part for whole in divided for part in _cut(whole, counts[whole])]


def _proportional(ranges: list[Range], min_partitions: int) -> Mapping[Range, int]:
    """How many parts each range becomes. Small ones stay whole, and what they leave over goes to the large ones."""
    total = sum(whole.size for whole in ranges)
    small = {whole for whole in ranges if _share(whole.size, total, min_partitions) == 1}
    large_total = total - sum(whole.size for whole in small)
    wanted = max(min_partitions - len(small), 1)
    return {whole: 1 if whole in small else _share(whole.size, large_total, wanted) for whole in ranges}


def _share(size: int, total: int, count: int) -> int:
    return max(math.floor(size / total * count + 0.5), 1)


def _cut(whole: Range, count: int) -> list[Range]:
    """`count` parts of nearly the same size."""
    bounds = [whole.start + whole.size * index // count for index in range(count + 1)]
    parts = [Range(whole.partition, start, end) for start, end in itertools.pairwise(bounds)]
    return [part for part in parts if part.size > 0]
