"""Moments as people write them: `2026-01-31T12:00`, `10m` (ago), `now`."""

from __future__ import annotations

import re
import time
from datetime import datetime

import typer

_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGO = re.compile(r"(\d+)(ms|s|m|h|d|w)")


def parse_time(text: str, option: str) -> int:
    """Unix milliseconds, none before 1970. A time without a zone is in this machine's zone."""
    if text == "now":
        return now_ms()
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(0, now_ms() - int(ago[1]) * _UNIT_MS[ago[2]])
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is no time; use for example 2026-01-31T12:00, 2026-01-31T12:00Z or 10m for ten minutes ago",
            param_hint=option,
        ) from None


def format_time(timestamp_ms: int) -> str | None:
    """ISO 8601 in UTC, to the millisecond; None for a record without a timestamp."""
    if timestamp_ms < 0:
        return None
    seconds, rest_ms = divmod(timestamp_ms, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest_ms:03}Z"


def now_ms() -> int:
    return int(time.time() * 1000)
