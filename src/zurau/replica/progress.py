"""What a leader knows of one follower, from its questions.

A follower is in one of three states, as in etcd's Raft: *probe*, until it has asked from a position of this log;
*replicate*, while it asks from such positions; *snapshot*, while it loads what was before the start of this log.
"""

from __future__ import annotations

from enum import StrEnum

from zurau.epochs import NO_EPOCH, Position
from zurau.ids import Epoch, Offset
from zurau.replica.messages import Fetch
from zurau.replica.settings import NEVER_MS

NOWHERE = Position(NO_EPOCH, -1)


class Following(StrEnum):
    PROBE = "probe"
    REPLICATE = "replicate"
    SNAPSHOT = "snapshot"


class Progress:
    __slots__ = (
        "_asked_ms",
        "_caught_up_ms",
        "_loaded",
        "_moved_ms",
        "_seen_end",
        "broker_epoch",
        "log_start",
        "parked",
        "position",
        "stands",
        "state",
        "told_start",
    )

    def __init__(self, now_ms: int) -> None:
        #: How far the follower has stored this leader's log, as it said last.
        self.position = NOWHERE
        #: Which start of its broker said so.
        self.broker_epoch = -1
        self.state = Following.PROBE
        #: Where its log begins, as it said last, and where it was told that the leader's begins.
        self.log_start: Offset = 0
        self.told_start: Offset = 0
        #: A question that waits for news, and until when.
        self.parked: tuple[Fetch, int] | None = None
        #: Its silence says that it asks.
        self.stands = False
        self._moved_ms = now_ms
        self._caught_up_ms = now_ms
        self._asked_ms = now_ms
        self._seen_end: Position | None = None
        self._loaded = -1

    @property
    def has_fetched(self) -> bool:
        """It knows who leads."""
        return self.state is not Following.PROBE

    @property
    def is_at_rest(self) -> bool:
        """It has everything, and its silence says so: all three moments below are now."""
        return self.stands and self.parked is not None

    @property
    def moved_ms(self) -> int:
        """When it was last seen to get ahead, or to have nothing left to fetch. A follower that asks for the same again
        and again is connected, and of no use."""
        return NEVER_MS if self.is_at_rest else self._moved_ms

    @property
    def caught_up_ms(self) -> int:
        """The last moment at which it is known to have had everything that the leader had."""
        return NEVER_MS if self.is_at_rest else self._caught_up_ms

    @property
    def asked_ms(self) -> int:
        """When it last asked something."""
        return NEVER_MS if self.is_at_rest else self._asked_ms

    def asked(self, fetch: Fetch, leader_end: Position, now_ms: int) -> None:
        self.state = Following.REPLICATE
        self._loaded = -1
        self.broker_epoch = fetch.broker_epoch
        self.log_start = fetch.log_start
        if fetch.position != self.position or fetch.position == leader_end:
            self._moved_ms = now_ms
        if fetch.position == leader_end:
            self._caught_up_ms = now_ms
        elif self._seen_end is not None and fetch.position >= self._seen_end:
            # It has what there was when it asked before; under load it may never have all that there is.
            self._caught_up_ms = self._asked_ms
        self.position = fetch.position
        self._seen_end = leader_end
        self._asked_ms = now_ms

    def corrected(self, fetch: Fetch, now_ms: int, *, is_snapshot: bool) -> None:
        """Its log has to become another first. One that loads a snapshot moves on while more of it comes."""
        self.state = Following.SNAPSHOT if is_snapshot else Following.PROBE
        self._seen_end = None
        if is_snapshot and fetch.loaded > self._loaded:
            self._loaded = fetch.loaded
            self._moved_ms = now_ms

    def stand(self, fetch: Fetch) -> None:
        self.stands = True
        self.parked = (fetch, NEVER_MS)

    def answered(self, now_ms: int) -> None:
        """Its question is used up. If it was silent, it is soon known how long that was true; until then, until now."""
        self.parked = None
        if self.stands:
            self._moved_ms = self._caught_up_ms = self._asked_ms = now_ms

    def stood_until(self, at_ms: int) -> None:
        if self.stands:
            self.stands = False
            self.parked = None
            self._moved_ms = self._caught_up_ms = self._asked_ms = at_ms

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
