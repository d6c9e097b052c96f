"""How long replicas wait for each other. Not settings of a user yet: they get Kafka's names when brokers use them."""

from __future__ import annotations

import msgspec

#: A deadline that does not come.
NEVER_MS = 1 << 62


class ReplicaSettings(msgspec.Struct, frozen=True):
    #: A follower that had no answer from its leader for so long asks to be voted for; up to twice as long, by chance.
    fetch_timeout_ms: int = 1000
    #: A round of votes takes no longer; up to twice as long, by chance, so that rounds do not collide for ever.
    election_timeout_ms: int = 500
    #: A fetch or a request for a vote without an answer is sent again.
    retry_ms: int = 250
    #: A leader without news answers a fetch after so long: this is its sign of life.
    fetch_wait_ms: int = 200
    #: That more is committed is told with the next records, or so much later by itself.
    high_watermark_delay_ms: int = 10
    #: The followers that a resigning leader names stand for election one after the other, so far apart.
    stagger_ms: int = 150
    #: An in-sync replica that was not caught up for so long is reported.
    lag_max_ms: int = 2000
    #: Fewer in-sync replicas than this, and nothing new is accepted.
    in_sync_min: int = 1
    #: A partition's part of an answer has about so many bytes, and a whole answer: one batch may be larger than either.
    #: What is left over comes with the next one.
    fetch_max_bytes: int = 1 << 20
    response_max_bytes: int = 4 << 20
    #: Whether a replica counts for what it has flushed, or for what it has written.
    waits_for_flush: bool = True
    #: Whether a follower's log begins where its leader's does. One that keeps snapshots of its own is trimmed by these.
    follows_start: bool = True

    @property
    def check_quorum_ms(self) -> int:
        """A leader that saw no majority move on for so long resigns. Longer than a follower takes to look for another
        leader, so that an election is not begun twice."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def forget_ms(self) -> int:
        """A leader forgets a learner that has not asked for so long."""
        return self.fetch_timeout_ms * 10
