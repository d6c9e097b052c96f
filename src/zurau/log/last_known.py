"""What is known of a log from elsewhere than its own files.

A log that ends early looks the same whether its last write was torn by a crash or its disk lost what it had promised to
keep. The broker's journal remembers how far each log was flushed, and so tells damage from a torn tail.
"""

from __future__ import annotations

from typing import NamedTuple

from zurau.epochs import EpochMark
from zurau.ids import Offset


class LastKnown(NamedTuple):
    """What the journal says of one log, from before this start."""

    #: Everything below was flushed: if it is not there now, the disk lost it.
    flushed_offset: Offset = 0
    #: Where the log ended when it was closed in good order; None if it was not.
    closed_offset: Offset | None = None
    #: The machine has not restarted since: what was written is there too, flushed or not, up to a last torn batch.
    kept_unflushed: bool = False
    #: Epoch marks that are safe there, and may not be in the log's own file yet.
    marks: tuple[EpochMark, ...] = ()
