"""One replica's view of its partition: the epoch it leads in and the high watermark.

A core: it is told what happened and says what follows. It starts as the leader of the next epoch when it is the only
voter; elections among several voters build on the same two facts, the epoch and how far each voter has stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from zurau.ids import BrokerId, Epoch, Offset


class LoneReplica:
    """What the only voter has stored is committed."""

    __slots__ = ("broker_id", "high_watermark", "leader_epoch")

    def __init__(
        self, broker_id: BrokerId, voters: Sequence[BrokerId], *, last_epoch: Epoch, log_start_offset: Offset
    ) -> None:
        assert list(voters) == [broker_id], "a partition of several replicas needs an election first"
        self.broker_id = broker_id
        #: Larger than any epoch in the log, so that what this leader writes can be told from what came before.
        self.leader_epoch = last_epoch + 1
        #: Invariant: it only grows, and never passes what the voter has stored.
        self.high_watermark = log_start_offset

    def stored(self, offset: Offset) -> bool:
        """The only voter has stored everything below `offset`. True when that moved the high watermark."""
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True
