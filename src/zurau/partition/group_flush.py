"""Flushing many logs with one flush of everything.

A flush of a file takes as long as the disk needs to say that it is safe, and a hundred of them, one after the other, a
hundred times as long. A flush of the whole file system is done in the time of a few. But it waits for all that anybody
has written there, other programs too, so it is for groups: who asks alone is flushed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from zurau.errors import DiskFault, FlushFailed
from zurau.pending import Pending
from zurau.ports import AfterAll, Disk

#: So many logs are flushed together. Fewer are flushed as quickly one by one, and nobody waits for others' bytes.
TOGETHER_MIN = 16

#: Who is to be told, what it got, or with what it failed.
Outcome = tuple[Pending[Any], Any, BaseException | None]


class Flush(NamedTuple):
    """What was asked for: see `Flusher`."""

    work: Callable[[], None]
    after_all: AfterAll | None
    pending: Pending[None]


def flush_alone(flush: Flush) -> Outcome:
    return outcome_of(flush.work, flush.pending)


def flush_together(disk: Disk, group: Sequence[Flush]) -> list[Outcome]:
    """One flush of the whole disk for all of them. If it fails nobody can say for which: it has failed for each."""
    fault: FlushFailed | None = None
    try:
        disk.flush_all()
    except FlushFailed as failed:
        fault = failed
    except DiskFault:  # nothing was flushed, and nothing is lost by that
        return [flush_alone(flush) for flush in group]
    except Exception as defect:  # noqa: BLE001 - carried to the loop too, or the flush thread would end with it
        return [(flush.pending, None, defect) for flush in group]
    return [outcome_of(partial(_finish, flush, fault), flush.pending) for flush in group]


def _finish(flush: Flush, fault: FlushFailed | None) -> None:
    assert flush.after_all is not None, "who cannot be together is flushed alone"
    flush.after_all(fault)


def outcome_of(work: Callable[[], Any], pending: Pending[Any]) -> Outcome:
    try:
        return pending, work(), None
    except Exception as error:  # noqa: BLE001 - carried to the loop, where whoever waits gets it
        return pending, None, error
