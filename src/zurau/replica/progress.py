"""What a leader knows of one follower, from its questions."""

from __future__ import annotations

from zurau.ids import Epoch, Offset
from zurau.replica.messages import Fetch
from zurau.replica.position import NO_EPOCH, Position

NOWHERE = Position(NO_EPOCH, -1)


class Progress:
    __slots__ = ("caught_up_ms", "has_fetched", "moved_ms", "parked", "position", "seen_end")

    def __init__(self, now_ms: int) -> None:
        #: How far the follower has stored this leader's log, as it said last.
        self.position = NOWHERE
        self.has_fetched = False
        #: When it was last seen to get ahead, or to have nothing left to fetch. A follower that asks for the same again
        #: and again is connected, and of no use.
        self.moved_ms = now_ms
        #: When it last had everything that the leader had at its question before.
        self.caught_up_ms = now_ms
        self.seen_end = NOWHERE
        #: A question that waits for news, and until when.
        self.parked: tuple[Fetch, int] | None = None

    def asked(self, position: Position, leader_end: Position, now_ms: int) -> None:
        self.has_fetched = True
        if position != self.position or position == leader_end:
            self.moved_ms = now_ms
        if position >= self.seen_end and self.seen_end is not NOWHERE:
            self.caught_up_ms = now_ms
        self.position = position
        self.seen_end = leader_end

    def stored_in(self, epoch: Epoch) -> Offset:
        """How far it counts towards the high watermark: not at all before it holds the leader's mark.

        What was written in an earlier epoch may be on a majority and still be replaced (Raft, figure 8), unless
        something of this epoch follows it there.
        """
        return self.position.offset if self.position.epoch == epoch else -1
