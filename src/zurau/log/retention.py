"""Which of the oldest segments may go: those that are too old, too much, or wholly before the log's start."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from zurau.ids import Offset
from zurau.log.segment import NO_TIMESTAMP, Segment
from zurau.log.settings import LogSettings

NO_LIMIT = -1


def count_expired(
    segments: Sequence[Segment],
    settings: LogSettings,
    *,
    now_ms: int,
    known_since_ms: int,
    start_offset: Offset,
    upto_offset: Offset,
) -> int:
    """How many of `segments`, oldest first, may go. The last one, which is written to, never may."""
    expires = "delete" in settings.cleanup_policy
    excess_bytes = sum(segment.size for segment in segments) - settings.retention_bytes
    count = 0
    for segment, following in pairwise(segments):
        excess_bytes -= segment.size
        is_too_much = settings.retention_bytes != NO_LIMIT and excess_bytes >= 0
        is_too_old = is_older(segment, settings.retention_ms, now_ms=now_ms, known_since_ms=known_since_ms)
        is_wanted = following.base_offset > start_offset and not (expires and (is_too_much or is_too_old))
        if is_wanted or following.base_offset > upto_offset:
            break
        count += 1
    return count


def is_older(segment: Segment, age_ms: int, *, now_ms: int, known_since_ms: int) -> bool:
    """Whether even the newest record is older than `age_ms`. Without timestamps, it is as old as this log is open."""
    newest_ms = segment.max_timestamp if segment.max_timestamp != NO_TIMESTAMP else known_since_ms
    return age_ms != NO_LIMIT and now_ms - newest_ms > age_ms
