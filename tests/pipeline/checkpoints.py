"""Looking into a checkpoint, to do harm at the worst moment: while a batch is planned and not done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from driver import wait_until


def batches_in(checkpoint: Path, log: str) -> set[int]:
    """The batches that a checkpoint says are planned (`offsets`) or done (`commits`)."""
    return {int(file.name) for file in (checkpoint / log).glob("*") if file.name.isdecimal()}


def wait_for_mid_batch(
    checkpoint: Path, patience_s: float = 60, check_alive: Callable[[], None] = lambda: None
) -> None:
    """Until one more batch is done, and then until one is planned and not done."""

    def done() -> set[int]:
        check_alive()
        return batches_in(checkpoint, "commits")

    seen = len(done())
    wait_until("a batch is done", lambda: len(done()) > seen, patience_s)
    wait_until("a batch is under way", lambda: bool(batches_in(checkpoint, "offsets") - done()), patience_s)
