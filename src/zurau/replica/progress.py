"""What a leader knows of one follower, from its questions."""

from __future__ import annotations

from zurau.ids import Epoch, Offset
from zurau.replica.messages import Fetch
from zurau.replica.position import NO_EPOCH, Position

NOWHERE = Position(NO_EPOCH, -1)


class Progress:
    __slots__ = (
        "_seen_end",
        "asked_ms",
        "broker_epoch",
        "caught_up_ms",
        "has_fetched",
        "moved_ms",
        "parked",
        "position",
    )

    def __init__(self, now_ms: int) -> None:
        #: How far the follower has stored this leader's log, as it said last.
        self.position = NOWHERE
        #: Which start of its broker said so.
        self.broker_epoch = -1
        self.has_fetched = False
        #: When it was last seen to get ahead, or to have nothing left to fetch. A follower that asks for the same again
        #: and again is connected, and of no use.
        self.moved_ms = now_ms
        #: The last moment at which it is known to have had everything that the leader had.
        self.caught_up_ms = now_ms
        #: A question that waits for news, and until when.
        self.parked: tuple[Fetch, int] | None = None
        self._seen_end: Position | None = None
        #: When it last asked something.
        self.asked_ms = now_ms

    def asked(self, fetch: Fetch, leader_end: Position, now_ms: int) -> None:
        self.has_fetched = True
        self.broker_epoch = fetch.broker_epoch
        if fetch.position != self.position or fetch.position == leader_end:
            self.moved_ms = now_ms
        if fetch.position == leader_end:
            self.caught_up_ms = now_ms
        elif self._seen_end is not None and fetch.position >= self._seen_end:
            # It has what there was when it asked before; under load it may never have all that there is.
            self.caught_up_ms = self.asked_ms
        self.position = fetch.position
        self._seen_end = leader_end
        self.asked_ms = now_ms

    def park(self, fetch: Fetch, until_ms: int) -> None:
        """Let a question wait. One that comes once more does not wait anew: when other partitions have much to say, it
        comes with everything that is said, and would never be answered."""
        if self.parked is None or self.parked[0].fetch_id != fetch.fetch_id:
            self.parked = (fetch, until_ms)

    def stored_in(self, epoch: Epoch) -> Offset:
        """How far it counts towards the high watermark: not at all before it holds the leader's mark.

        What was written in an earlier epoch may be on a majority and still be replaced (Raft, figure 8), unless
        something of this epoch follows it there.
        """
        return self.position.offset if self.position.epoch == epoch else -1
