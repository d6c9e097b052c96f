"""Why a batch may be missing on which the next one follows.

A producer has several batches under way. When the first of them is refused for a reason that passes (no leader yet, too
few in sync, no room), and the reason has passed when the second arrives, the second does not follow on what is stored.
Told that its numbers are wrong, a producer takes the first for lost, begins to count anew, and stores again what an
earlier try may have stored. So for a while a gap is answered with the reason for which the batch before it was refused,
or could have been: producers then send all of them again, in their order.
"""

from __future__ import annotations

from zurau.errors import Refused
from zurau.ids import Offset
from zurau.ports import Clock
from zurau.settings import INT64_MAX
from zurau.wire.kafka.error_codes import ErrorCode

#: For so long after a refusal a gap is taken for its consequence: what was under way with it has arrived by then.
CONSEQUENCES_MS = 5000
_EVERYBODY = INT64_MAX


class Refusals:
    """Of one partition, whoever was refused: producers share connections, and a partition has few refusals."""

    __slots__ = ("_clock", "_explained_below", "_last", "_until_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: Refused | None = None
        #: Who has written from this offset on was not among the refused, or has come back.
        self._explained_below: Offset = 0
        self._until_ms = 0.0

    def refused(self, reason: Refused) -> Refused:
        """A batch was refused for a reason that passes."""
        self._last, self._explained_below = reason, _EVERYBODY
        self._until_ms = self._clock.monotonic_ms() + CONSEQUENCES_MS
        return reason

    def leadership_began(self, name: object, offset: Offset) -> None:
        """Whatever came a moment ago was refused, here or by being lost with the leader before."""
        self._last = Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{name} has had this leader only for a moment")
        self._explained_below = offset
        self._until_ms = self._clock.monotonic_ms() + CONSEQUENCES_MS

    def explanation(self, last_offset: Offset) -> Refused | None:
        """Of a gap behind the batch at `last_offset` (-1: nothing is known of its producer); None: it is the producer's
        own."""
        if self._last is None or last_offset >= self._explained_below or self._clock.monotonic_ms() >= self._until_ms:
            return None
        return Refused(self._last.code, self._last.message)
