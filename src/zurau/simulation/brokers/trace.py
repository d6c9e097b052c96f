"""What happened, as one number and, if somebody is going to read it, as lines.

The number is the same whenever the same seed is run; where it is not, something in the broker or here depends on what
it should not: the order of a set, the real time, a thread.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

from zurau.simulation.brokers.agenda import Agenda


class Trace:
    def __init__(self, agenda: Agenda, *, keeps_lines: bool) -> None:
        self._agenda = agenda
        self.keeps_lines = keeps_lines
        self.lines: list[str] = []
        #: Those that somebody who is in a hurry would read.
        self.turns: list[str] = []
        self.sum = 0

    def note(self, text: str) -> None:
        line = f"{self._agenda.now_ms:10.2f}  {text}"
        self.sum = crc32(line.encode(), self.sum)
        if self.keeps_lines:
            self.lines.append(line)

    def aside(self, text: str) -> None:
        """A line for whoever reads, which does not count."""
        self.lines.append(f"{self._agenda.now_ms:10.2f}  {text}")

    def fault(self, text: str) -> None:
        self.note(f"!! {text}")
        self.turns += self.lines[-1:]


@contextmanager
def brokers_log_to(trace: Trace, unexpected: list[str]) -> Iterator[None]:
    """What brokers log goes into the trace; what they ask people to report is a finding."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            trace.note(f"   log: {text}")
            if "please report" in text:
                unexpected.append(text)
                self._note_where(record)

        def _note_where(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info else None
            for line in "".join(traceback.format_exception(error)).splitlines() if error is not None else ():
                trace.note(f"        {line}")

    logger, handler = logging.getLogger("zurau"), Handler(logging.WARNING)
    before = logger.propagate, logger.level
    logger.addHandler(handler)
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate, logger.level = before
