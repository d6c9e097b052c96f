"""What a replica may still be called when it has read its disk again.

After a power failure a log may end in a batch that was torn. That is cut off and forgotten: nobody was told of it. But
a batch that was flushed has been promised, to a leader that counted it or in a vote, and a log that has lost it must
not vote as if it had never been there: one flipped bit on one disk could cost the whole partition a record. So how far
a log was flushed is written down with every flush, apart from the log, and lowered before a cut. What ends before it is
damaged. A damaged replica keeps what is whole and loses its name: under a new one it fetches what it lacks from the
leader, and counts again when it has been taken in again.
"""

from __future__ import annotations

from dataclasses import dataclass

from zurau.epochs import Position


@dataclass(frozen=True, slots=True)
class Found:
    """What is left on a disk, every checksum looked at."""

    #: Where the log ends, cut before the first item that does not match its checksum.
    whole: Position
    #: How far it was flushed, as it says itself.
    flushed: Position
    #: Epoch and vote could be read.
    has_vote: bool
    #: What was before the start of the log could be read, or nothing was.
    has_snapshot: bool


def keeps_its_name(found: Found) -> bool:
    """Everything that was ever promised by this replica is still there."""
    return found.has_vote and found.has_snapshot and found.whole >= found.flushed
