"""Whether a replica still has everything that it promised when it has read its disk again.

After a power failure a log may end in a torn batch. That is truncated and forgotten: nobody was told of it. But a batch
that was flushed has been promised, to a leader that counted it or in a vote, and a log that has lost it must not vote
as if it had never been there: one flipped bit on one disk could cost the whole partition a record. So how far a log was
flushed is stored with every flush, apart from the log, and lowered before a truncation. A log that ends before it is
damaged. A damaged replica keeps what is whole under a new directory id: it fetches what it lacks from the leader, and
counts again when it has been made a voter, or in sync, again.
"""

from __future__ import annotations

import msgspec

from zurau.epochs import Position


class Found(msgspec.Struct, frozen=True):
    """What is left on a disk, every checksum looked at."""

    #: Where the log ends, truncated before the first item that does not match its checksum.
    whole: Position
    #: How far it was flushed, as it says itself.
    flushed: Position
    #: Epoch and vote could be read.
    has_vote: bool
    #: What was before the start of the log could be read, or nothing was.
    has_snapshot: bool


def is_intact(found: Found) -> bool:
    """Everything that was ever promised by this replica is still there."""
    return found.has_vote and found.has_snapshot and found.whole >= found.flushed
