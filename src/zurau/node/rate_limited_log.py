"""Says a thing once a second at most.

What a client can provoke it can provoke ten thousand times a second, and a log that fills the disk is worse than what
it tells of. What was left unsaid is counted in the next line.
"""

from __future__ import annotations

import logging
import time

INTERVAL_S = 1.0


class RateLimitedLog:
    """One kind of warning."""

    __slots__ = ("_log", "_next_at", "_unsaid")

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._next_at = 0.0
        self._unsaid = 0

    def warning(self, message: str, *details: object) -> None:
        now = time.monotonic()
        if now < self._next_at:
            self._unsaid += 1
            return
        self._next_at = now + INTERVAL_S
        if self._unsaid:
            message += " (and %d more like this were not logged)"
            details = (*details, self._unsaid)
            self._unsaid = 0
        self._log.warning(message, *details)
