"""Outcomes that nobody waits for: what fails is logged, and never lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from zurau.errors import DiskFault, raise_if_broken
from zurau.pending import Pending

log = logging.getLogger("zurau.broker")

T = TypeVar("T")


def log_failure(what: str) -> Callable[[Pending[Any]], None]:
    """To be called with an outcome; a failure is logged with `what` it means."""

    def look(outcome: Pending[Any]) -> None:
        if outcome.error is not None:
            report(what, outcome.error)

    return look


def tried(work: Callable[[], T], failed: Callable[[Exception], None]) -> T | None:
    """What it returns, done here and now; None if it failed, and then `failed` is told why."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told on
        raise_if_broken(error)
        failed(error)
        return None


def failure_in(work: Callable[[], Any]) -> Exception | None:
    """Do it here and now; why it failed, or None."""
    failures: list[Exception] = []
    tried(work, failures.append)
    return failures[0] if failures else None


def report(what: str, failure: BaseException) -> None:
    """The disk's faults say what to do; anything else is a defect of ours, and is logged with where it happened."""
    raise_if_broken(failure)
    if isinstance(failure, DiskFault):
        log.warning("%s: %s", what, failure)
    else:
        log.error("%s: %r; please report this", what, failure, exc_info=failure)
