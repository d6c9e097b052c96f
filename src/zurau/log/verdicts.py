"""What a bad place in a log is: damage, or a torn tail that a crash explains.

The rules are a table, read from the top: the first that applies decides. Damage is never cut; a torn tail was never
acknowledged, and is.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from zurau.ids import Offset
from zurau.log.last_known import LastKnown


class Verdict(Enum):
    DAMAGED = "damaged"
    TORN = "torn"


class Evidence(NamedTuple):
    """What is known of a place where a log is bad, or ends too early."""

    offset: Offset
    #: The log was closed in good order, or an index entry of a later segment proves that all of this one was flushed.
    is_believed: bool
    #: Everything below was flushed, as index entries and the journal say.
    flushed_offset: Offset
    #: What the broker's journal says of the log; None if there is no journal.
    last_known: LastKnown | None
    #: In the same file.
    good_follows: bool = False
    #: It is the beginning of a batch, at the very end of the log.
    is_last_write: bool = False


_Rule = tuple[str, Callable[[Evidence], bool], Verdict]

RULES: tuple[_Rule, ...] = (
    ("a clean stop, or an index entry, says that it was whole", lambda e: e.is_believed, Verdict.DAMAGED),
    ("it had been flushed", lambda e: e.offset < e.flushed_offset, Verdict.DAMAGED),
    ("no journal; good batches follow", lambda e: not e.last_known and e.good_follows, Verdict.DAMAGED),
    ("no journal; nobody knows better", lambda e: not e.last_known, Verdict.TORN),
    ("the last write was cut short", lambda e: e.is_last_write, Verdict.TORN),
    ("the machine ran on, so what was written is there", lambda e: _ran_on(e.last_known), Verdict.DAMAGED),
    ("the machine went down before it was flushed", lambda _: True, Verdict.TORN),
)


def judge(evidence: Evidence) -> Verdict:
    return next(verdict for _, applies, verdict in RULES if applies(evidence))


def _ran_on(last_known: LastKnown | None) -> bool:
    return last_known is not None and last_known.kept_unflushed
